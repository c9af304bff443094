"""The pictures of pages that the docs have, as PNG files: pages of `run.py serve` in Chromium.

    .venv/bin/python scripts/page_pictures.py LOG_PATH docs/images

LOG_PATH: a folder with result folders of real runs, of which all rounds are compared and the newest run's report is
shown; where runs of a search are among them, also the newest one's. Pictures of many devices are of samples that are
made up here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from tests.run_benchmarks.report.long_run import Made, write_made_run  # noqa: E402

RUN_PY = ROOT / "training" / "run_benchmarks" / "run.py"
SEARCH = "search:"  # how its cases begin
DRAWN_MS = 2500  # until charts are drawn
MADE = Made(tuple(f"node{number}" for number in range(4)), seconds=7200, steps=1440)


@dataclass(frozen=True)
class Picture:
    """What is seen from a place of a page on, `height` CSS pixels high; show: how the table of runs leads there."""

    name: str
    show: Callable[[Page], object]
    place: str = "body"
    height: int = 800
    scheme: Literal["light", "dark"] = "light"


def _chart(page: Page) -> None:
    page.goto(f"{page.url}scatter?x=p_train&y=time_to_target")


def _report(page: Page) -> None:
    page.locator("tbody a").first.click()


def _search(page: Page) -> None:
    page.locator(f"tbody tr:has-text('{SEARCH}') a").first.click()


def _comparison(page: Page) -> None:
    """Of all rounds of the newest case."""
    boxes = page.locator('input[name="r"]').all()
    case = (boxes[0].get_attribute("value") or "").split("/")[1]
    for box in boxes:
        if f"/{case}/" in (box.get_attribute("value") or ""):
            box.check()
    page.locator("button.main").click()


OF_RUNS = (
    Picture("runs", lambda page: page),
    Picture("runs_chart", _chart),
    Picture("report", _report, "section h2:has(.good)", 1075),
    Picture("comparison", _comparison, height=1000),
)
OF_SEARCH = (Picture("search", _search, "h3:has-text('The family of')", 1000),)
OF_DEVICES = (
    Picture("report_dark", _report, "figure:has-text('Power, accelerators')", 400, "dark"),
    Picture("report_heat", _report, "h4:has-text('Temperature, accelerators: greatest')", 225, "dark"),
)


def take(log_path: Path, pictures: Sequence[Picture], out: Path) -> None:
    """Serve the runs, take the pictures, end."""
    command = [sys.executable, str(RUN_PY), "serve", "--log-path", str(log_path), "--port", "0"]
    with (
        tempfile.TemporaryDirectory() as cache,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "XDG_CACHE_HOME": cache}
        ) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout  # noqa: S101 - for mypy
        site = server.stdout.readline().strip()
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for each in pictures:
            size = {"width": 1200, "height": each.height}
            page = browser.new_page(viewport=size, color_scheme=each.scheme)  # type: ignore[arg-type]
            page.goto(site)
            each.show(page)
            page.locator(each.place).first.evaluate("(element) => element.scrollIntoView()")
            page.wait_for_timeout(DRAWN_MS)
            page.screenshot(path=out / f"{each.name}.png")
        browser.close()
        server.terminate()


def main() -> None:
    """Take all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log_path", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    take(arguments.log_path, OF_RUNS, arguments.out)
    if any(arguments.log_path.glob(f"*/{SEARCH}*")):
        take(arguments.log_path, OF_SEARCH, arguments.out)
    with tempfile.TemporaryDirectory() as folder:
        write_made_run(Path(folder, "run20260102030405"), MADE)
        take(Path(folder), OF_DEVICES, arguments.out)


if __name__ == "__main__":
    main()
