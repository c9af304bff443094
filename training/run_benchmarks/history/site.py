"""The site that `run.py serve` shows: all runs as a table, two figures as a chart, a run's report, comparisons.

Nothing is written, and no path is made of what an address says: it is looked up in the index.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from run_benchmarks.comparison.compare import Choice, compare
from run_benchmarks.comparison.page import comparison_page
from run_benchmarks.history import listing
from run_benchmarks.history.access import Guard
from run_benchmarks.history.asked import CHOICES, PAGE, Asked
from run_benchmarks.history.index import Index
from run_benchmarks.history.live import progress
from run_benchmarks.history.query import Query, Row, check_names, count, figure_names, select, values_of
from run_benchmarks.history.ticked import groups_of_ticks, tick_of
from run_benchmarks.report.chart import Chart, chart, scatter
from run_benchmarks.report.page import page, rendered
from run_benchmarks.report.report import report_body
from run_benchmarks.results.folder import open_folder
from run_benchmarks.results.load import run_in
from run_benchmarks.unforeseen import sentence_of
from utils.errors import FlagPerfError

FOLDER = Path(__file__).parent
MOST_REPORTS = 8  # that are asked for at once
FRESH_S = 2.0  # so long what was read of the folders is not read again


def make_site(index: Index, token: str | None, port: int) -> Starlette:
    """The site of the runs in `index`; `token` and `port` as in `Guard`."""
    site = _Site(index)
    routes: Sequence[tuple[str, Callable[[Request], Response]]] = (
        ("/", site.table),
        ("/scatter", site.scatter),
        ("/compare", site.compare),
        ("/run/{key}", site.run),
        ("/run/{key}/live", site.live),
    )
    return Starlette(
        routes=[Route(path, view) for path, view in routes],
        middleware=[Middleware(Guard, token=token, port=port)],
        exception_handlers=dict.fromkeys((FlagPerfError, HTTPException, Exception), _refused),
    )


class _Site:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._refreshing, self._refreshed_at = threading.Lock(), -FRESH_S
        # a report of a large run takes much memory: one at a time, and those that wait leave threads for the rest
        self._reporting, self._reports = threading.Lock(), threading.Semaphore(MOST_REPORTS)

    def table(self, request: Request) -> Response:
        """All rounds, filtered and sorted."""
        self._refresh()
        asked = Asked.of(request.query_params)
        chosen = tuple(dict.fromkeys(asked.columns.replace(",", " ").split()))
        check_names(self._index, chosen)
        rows = select(self._index, asked.query_of_page())
        columns = chosen or listing.columns_of(rows)
        return _page(
            "Runs",
            "list.html",
            [],
            **self._of_form(asked),
            folder=str(self._index.log_path),
            count=count(self._index, asked.query()),
            whole=count(self._index, Query()),
            columns=columns,
            rows=rows,
            remarks=listing.remarks(rows, columns, self._index.log_path),
            listing=listing,
            tick_of=tick_of,
            begin=int(asked.page) * PAGE,
            size=PAGE,
        )

    def scatter(self, request: Request) -> Response:
        """Two figures of each round."""
        self._refresh()
        asked, figures = Asked.of(request.query_params), figure_names(self._index)
        x, y = asked.x or _first(figures, "p_train"), asked.y or _first(figures, "energy", "acc")
        check_names(self._index, [name for name in (x, y) if name])
        rows = [row for row in select(self._index, asked.query()) if {x, y} <= row.figures.keys()]
        return _page(
            f"{y} against {x}",
            "scatter.html",
            [],
            **self._of_form(asked),
            count=len(rows),
            figures=figures,
            axes={"x": x, "y": y},
            chart=chart(picture(rows, x, y)) if rows else Markup("<p>No round has both.</p>"),
        )

    def run(self, request: Request) -> Response:
        """The report of a run, made now."""
        if not self._reports.acquire(blocking=False):
            message = f"{MOST_REPORTS} reports are being made already"
            raise FlagPerfError(message, remedy="Load this page again in a moment.")
        try:
            with self._reporting:
                folder = open_folder(self._folder(request))
                run = run_in(folder, self._index.secrets)
                body = report_body(folder, run, self._index.secrets().hide)
                return HTMLResponse(page(run.name, body, is_served=True))
        finally:
            self._reports.release()

    def live(self, request: Request) -> Response:
        """A run that goes on; its script asks for this page again and again."""
        folder, key = self._folder(request), request.path_params["key"]
        now = progress(folder)
        return _page(key, "live.html", ["live.js"], key=key, now=now, charts=list(map(chart, now["charts"])))

    def compare(self, request: Request) -> Response:
        """What was ticked, against the earliest of it."""
        self._refresh()
        choice = Choice(even_if_not_comparable="anyway" in request.query_params)
        comparison = compare(groups_of_ticks(self._index, request.query_params.getlist("r")), choice)
        return HTMLResponse(comparison_page(comparison, is_served=True))

    def _folder(self, request: Request) -> Path:
        folder = self._index.path_of(request.path_params["key"])
        if folder is None:
            self._refresh()
            folder = self._index.path_of(request.path_params["key"])
        if folder is None:
            raise HTTPException(404)
        return folder

    def _refresh(self) -> None:
        """See what has changed, unless that was done a moment ago."""
        with self._refreshing:
            if time.monotonic() - self._refreshed_at >= FRESH_S:
                self._index.refresh()
                self._refreshed_at = time.monotonic()

    def _of_form(self, asked: Asked) -> dict[str, Any]:
        return {"asked": asked, "choices": [(name, values_of(self._index, name)) for name in CHOICES]}


def _page(title: str, template: str, scripts: Sequence[str], status: int = 200, **values: Any) -> Response:
    body = rendered(template, FOLDER / "templates", title=title, **values)
    sources = [(FOLDER / "static" / name).read_text(encoding="utf-8") for name in scripts]
    return HTMLResponse(page(title, body, scripts=sources, is_served=True), status)


def _refused(_: Request, error: Exception) -> Response:
    """What cannot be shown is said on a page."""
    message, remedy, status = "There is no such page, or no such run any more.", "", 404
    if isinstance(error, FlagPerfError):
        message = f"{error.where}: {error.message}" if error.where else error.message
        remedy, status = error.remedy, 400
    elif isinstance(error, HTTPException):
        status = error.status_code
    else:
        message, remedy, status = f"A fault of FlagPerf itself: {sentence_of(error)}", "Report it.", 500
    return _page("This cannot be shown", "message.html", [], status, message=message, remedy=remedy)


def _first(figures: Sequence[str], *wanted: str) -> str:
    """The first of those that are wanted and there, else any."""
    return next((name for name in (*wanted, *figures) if name in figures), "")


def picture(rows: Sequence[Row], x: str, y: str) -> Chart:
    """A point a round, a colour a case, and of what is measured differently also what that is; every row has both."""
    mixed = listing.with_several_units((x, y), rows)
    points = [
        (
            ", ".join([row.case, *(f"{name} in {row.figures[name].full_unit}" for name in mixed)]),
            "; ".join([f"{row.run}, round {row.round}, {row.verdict}", *listing.caveats(row, (x, y))]),
            row.figures[x].value,
            row.figures[y].value,
        )
        for row in rows
    ]
    note = (
        f"Not all in one unit or of one part of a machine: not to be held against each other: {', '.join(mixed)}."
        if mixed
        else ""
    )
    axis = (x, listing.unit_of(x, rows))
    return scatter(f"{y} against {x}", axis, listing.unit_of(y, rows), points, note)
