"""The site that `run.py serve` shows: all runs as a table, two figures as a chart, a run's report, comparisons.

Nothing is written, and no path is made of what an address says: it is looked up in the index.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from run_benchmarks.comparison.compare import Choice, compare_groups
from run_benchmarks.comparison.page import comparison_page
from run_benchmarks.history.access import Guard
from run_benchmarks.history.asked import CHOICES, PAGE, Asked
from run_benchmarks.history.charts import scatter
from run_benchmarks.history.entries import State
from run_benchmarks.history.index import Index
from run_benchmarks.history.listing import cell, columns_of, figures_of, heading, remarks
from run_benchmarks.history.live import charts_of, progress
from run_benchmarks.history.query import (
    COLUMNS,
    NUMBERS,
    Condition,
    Query,
    Row,
    check_names,
    count,
    figure_names,
    select,
    values_of,
)
from run_benchmarks.history.ticked import groups_of_ticks, tick_of
from run_benchmarks.report.chart import chart
from run_benchmarks.report.page import environment, page
from run_benchmarks.report.report import report_body
from run_benchmarks.results.folder import open_folder
from run_benchmarks.results.load import run_in
from utils.errors import FlagPerfError
from utils.records import Verdict

FOLDER = Path(__file__).parent
FRESH_S = 2.0  # so long what was read of the folders is not read again
SUCCESSES = {verdict.value for verdict in Verdict if verdict.is_success}
LOOKS = {State.GOES_ON: "doubtful", State.NOT_ENDED: "bad", State.UNREADABLE: "bad"}


def make_site(index: Index, token: str | None, port: int) -> Starlette:
    """The site of the runs in `index`; `token` and `port` as in `Guard`."""
    site = _Site(index)
    routes: Sequence[tuple[str, Callable[[Request], Response]]] = (
        ("/", site.table),
        ("/scatter", site.scatter),
        ("/compare", site.compare),
        ("/run/{key}", site.run),
        ("/run/{key}/live", site.live),
        ("/run/{key}/progress", site.progress),
    )
    return Starlette(
        routes=[Route(path, view) for path, view in routes],
        middleware=[Middleware(Guard, token=token, port=port)],
        exception_handlers={FlagPerfError: _refused, HTTPException: _not_there},
    )


class _Site:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._refreshing, self._refreshed_at = threading.Lock(), -FRESH_S
        self._reporting = threading.Lock()  # a report of a large run takes much memory: one at a time

    def table(self, request: Request) -> Response:
        """All rounds, filtered and sorted."""
        self._refresh()
        asked = Asked.of(request.query_params)
        chosen = tuple(dict.fromkeys(name.strip() for name in asked.columns.split(",") if name.strip()))
        check_names(self._index, chosen)
        rows = select(self._index, asked.query_of_page(), figures_of(chosen))
        number, columns = count(self._index, asked.query()), chosen or columns_of(rows)
        page_of = [asked.address("/", page=asked.page + step) for step in (-1, 1)]
        return _page(
            "Runs",
            "list.html",
            ["list.js"],
            **self._of_form(asked),
            folder=str(self._index.log_path),
            going_on=self._going_on(),
            count=number,
            whole=count(self._index, Query()),
            scatter=asked.address("/scatter"),
            headings=[_heading(asked, column, rows) for column in columns],
            rows=[_row(row, columns) for row in rows],
            remarks=remarks(rows, columns),
            first=asked.page * PAGE + 1,
            last=asked.page * PAGE + len(rows),
            size=PAGE,
            earlier=page_of[0] if asked.page else "",
            later=page_of[1] if (asked.page + 1) * PAGE < number else "",
        )

    def scatter(self, request: Request) -> Response:
        """Two figures of each round."""
        self._refresh()
        asked, figures = Asked.of(request.query_params), figure_names(self._index)
        x, y = asked.x or _first(figures, "p_train"), asked.y or _first(figures, "energy", "acc")
        check_names(self._index, [name for name in (x, y) if name])
        rows = [row for row in select(self._index, asked.query(), (x, y)) if {x, y} <= row.figures.keys()]
        form = self._of_form(asked)
        form["form"] = {**form["form"], "x": x, "y": y}
        picture = chart(scatter(rows, x, y)) if rows else Markup("<p>No round has both.</p>")
        return _page(
            f"{y} against {x}", "scatter.html", [], **form, count=len(rows), figures=figures,
            list=asked.address("/", x="", y=""), chart=picture,
        )  # fmt: skip

    def run(self, request: Request) -> Response:
        """The report of a run, made now."""
        folder = open_folder(self._folder(request))
        run = run_in(folder)
        with self._reporting:
            return HTMLResponse(page(run.name, report_body(folder, run), is_served=True))

    def live(self, request: Request) -> Response:
        """A run that goes on."""
        folder, key = self._folder(request), request.path_params["key"]
        return _page(
            key,
            "live.html",
            ["live.js"],
            run=key,
            address=f"/run/{key}/progress",
            now=progress(folder),
            report=f"/run/{key}",
            charts=[chart(each) for each in charts_of(folder)],
        )

    def progress(self, request: Request) -> Response:
        """How far it is, for the page's script."""
        return JSONResponse(progress(self._folder(request)))

    def compare(self, request: Request) -> Response:
        """What was ticked, against the earliest of it."""
        self._refresh()
        choice = Choice(even_if_not_comparable="anyway" in request.query_params)
        comparison = compare_groups(groups_of_ticks(self._index, request.query_params.getlist("r")), choice)
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

    def _going_on(self) -> list[tuple[str, str]]:
        """Name and address of the runs that go on."""
        rows = select(self._index, Query((Condition("state", "=", State.GOES_ON),)))
        return list(dict.fromkeys((row.run, f"/run/{row.key}/live") for row in rows))

    def _of_form(self, asked: Asked) -> dict[str, Any]:
        choices = [(name, values_of(self._index, name)) for name in CHOICES]
        return {"form": vars(asked), "choices": choices}


def _page(title: str, template: str, scripts: Sequence[str], status: int = 200, **values: Any) -> Response:
    text = environment(FOLDER / "templates").get_template(template).render(title=title, **values)
    sources = [(FOLDER / "static" / name).read_text(encoding="utf-8") for name in scripts]
    body = Markup(text)  # noqa: S704 - a template with autoescape made it
    return HTMLResponse(page(title, body, scripts=sources, is_served=True), status)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, FlagPerfError)  # noqa: S101 - for mypy
    where = f"{error.where}: " if error.where else ""
    return _page(
        "This cannot be shown", "message.html", [], 400, message=where + error.message, remedy=error.remedy
    )


def _not_there(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - for mypy
    message = "There is no such page, or no such run any more."
    return _page("Not here", "message.html", [], error.status_code, message=message, remedy="")


def _heading(asked: Asked, column: str, rows: Sequence[Row]) -> Mapping[str, Any]:
    """A column's heading, which sorts by it: first the largest number or the first text, then the other way round."""
    is_text = column in COLUMNS and column != "started"
    first, second = (column, f"-{column}") if is_text else (f"-{column}", column)
    order = second if asked.sort == first else first
    way = {column: "ascending", f"-{column}": "descending"}.get(asked.sort, "")
    return {
        "text": heading(column, rows),
        "way": way,
        "address": asked.address("/", sort=order),
        "is_number": _is_number(column),
    }


def _row(row: Row, columns: Sequence[str]) -> Mapping[str, Any]:
    name = f"{row.run}, {row.case}, round {row.round}" if row.case else row.run
    return {"name": name, "tick": tick_of(row), "cells": [_cell(row, column) for column in columns]}


def _cell(row: Row, column: str) -> Mapping[str, Any]:
    address = look = ""
    if column == "run":
        address = f"/run/{row.key}/live" if row.state == State.GOES_ON else f"/run/{row.key}"
    elif column == "verdict":
        look = _look(row)
    return {"text": cell(row, column), "address": address, "look": look, "is_number": _is_number(column)}


def _is_number(column: str) -> bool:
    return column not in COLUMNS or column in NUMBERS


def _look(row: Row) -> str:
    if not row.verdict:
        return LOOKS.get(State(row.state), "")
    return "good" if row.verdict in SUCCESSES else "bad"


def _first(figures: Sequence[str], *wanted: str) -> str:
    """The first of those that are wanted and there, else any."""
    return next((name for name in (*wanted, *figures) if name in figures), "")
