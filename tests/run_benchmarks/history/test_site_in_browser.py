"""The site of `run.py serve` in a real browser: a whole `run.py serve`, on a port of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.journal import Journal
from tests.browser import PHONE, Opener, serious_faults
from tests.run_benchmarks.results.made_runs import CASES, make_runs

RUN_PY = Path(__file__).resolve().parents[3] / "training" / "run_benchmarks" / "run.py"
HOSTILE = "<img src=x onerror=alert(1)>"
LINE = "2026-01-02 03:04:05,000\t[INFO]\t[lines.py,1]step {}, loss {:.4f}, 80.0 samples/s\n"


def hostile_hosts(number: int, result: dict[str, Any]) -> None:
    """The first run's hosts have names that are a page of their own."""
    if number == 0:
        result["hosts"] = [HOSTILE, "<svg onload=alert(2)>"]


@dataclass(frozen=True)
class Served:
    """A server that runs. `address` has the token, `folder` the runs."""

    address: str
    folder: Path
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("site")
    runs = make_runs(folder / "result", 4, hostile_hosts)
    runs[0].rename(folder / "result" / HOSTILE)
    command = [sys.executable, str(RUN_PY), "serve", "--log-path", str(folder / "result"), "--port", "0"]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "FLAGPERF_SERVE_TOKEN": "0123456789abcdef"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    assert process.stdout
    with process:
        yield Served(
            f"{process.stdout.readline().strip()}?token=0123456789abcdef", folder / "result", process
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def column(page: Any, number: int) -> list[str]:
    """The texts of a column of the table, from 1."""
    return page.locator(f"table.list tbody tr td:nth-child({number})").all_inner_texts()


def press_and_go(page: Any, key: str) -> None:
    """Press a key that leads to another page, and wait for that."""
    with page.expect_navigation():
        page.keyboard.press(key)


def test_the_table_is_filtered_and_sorted_by_mouse_and_by_keyboard(served: Served, open_page: Opener) -> None:
    page = open_page(served.address)
    assert page.url.endswith("/") and page.locator("table.list tbody tr").count() == 12
    page.get_by_label("case").select_option(CASES[1])
    page.get_by_label("where").fill("round = 1")
    press_and_go(page, "Enter")
    assert column(page, 3) == [CASES[1]] * 2
    page.get_by_role("link", name="p_train /s").click()
    page.wait_for_url("**sort=-p_train**")
    assert page.get_by_role("columnheader", name="p_train /s").get_attribute("aria-sort") == "descending"
    first = column(page, 9)
    page.get_by_role("link", name="p_train /s").press("Enter")
    page.wait_for_url("**sort=p_train**")
    assert column(page, 9) == first[::-1] and len(set(first)) == 2
    with page.expect_navigation():
        page.get_by_role("link", name="everything").click()
    assert page.locator("table.list tbody tr").count() == 12
    assert serious_faults(page) == []


def test_what_is_ticked_is_compared(served: Served, open_page: Opener) -> None:
    page = open_page(served.address)
    button = page.get_by_role("button", name="Compare what is ticked")
    ticks = page.locator('table.list input[aria-label*=", round 1"]')
    ticks.nth(0).focus()
    page.keyboard.press("Space")
    ticks.nth(2).check()
    button.press("Enter")
    page.wait_for_url("**/compare?**")
    text = page.locator("main").inner_text()
    assert "p_train" in text and re.search(r"too few|no difference|one round", text, re.IGNORECASE), text
    assert serious_faults(page) == []


def test_two_figures_are_drawn(served: Served, open_page: Opener) -> None:
    page = open_page(served.address, color_scheme="dark")
    page.get_by_role("link", name="Chart of two figures").click()
    page.locator('select[name="x"]').select_option("e2e_time")
    page.get_by_role("button", name="Show", exact=True).focus()
    press_and_go(page, "Enter")
    assert page.get_by_role("heading", level=1).inner_text().endswith("against e2e_time")
    canvas = page.locator(".plot canvas")
    canvas.wait_for()
    coloured = canvas.evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height)"
        ".data.filter((value, place) => place % 4 == 3 && value > 200).length"
    )
    assert coloured > 200
    page.locator(".plot").focus()
    readings = []
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        readings.append(page.locator(".reading").inner_text())
    assert all("round" in each for each in readings) and len(set(readings)) == 12, (
        "each point, of whichever case"
    )
    assert serious_faults(page) == []


def test_hostile_names_are_text_in_the_table_and_in_the_report(served: Served, open_page: Opener) -> None:
    page = open_page(served.address, viewport={"width": PHONE, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only tables scroll sideways"
    page.get_by_label("columns").fill("run,hosts,verdict")
    press_and_go(page, "Enter")
    assert f"{HOSTILE}, <svg onload=alert(2)>" in " ".join(column(page, 3))
    page.get_by_role("link", name=HOSTILE).first.click()
    page.wait_for_url("**/run/x**")
    assert HOSTILE in page.locator("main").inner_text()
    assert page.locator('img[src="x"], svg[onload]').count() == 0
    assert serious_faults(page) == []


def test_a_run_that_goes_on_is_seen_to_move_and_to_end(served: Served, open_page: Opener) -> None:
    run = served.folder / "run20260601000000"
    shutil.copytree(sorted(served.folder.glob("run*"))[-1], run)
    (run / "summary.json").unlink()
    log = run / "flagperf_run.log"
    log.write_text(LINE.format(10, 2.5) + LINE.format(20, 2.0))
    controller = Journal(run / "journal.jsonl")
    try:
        time.sleep(2.1)  # what was read of the folders a moment ago is not read again
        page = open_page(served.address)
        page.get_by_role("link", name=run.name).first.click()
        page.get_by_text("step 20, loss 2.0000").wait_for()
        assert page.locator(".plot canvas").count() == 2
        with log.open("a") as file:
            file.write(LINE.format(30, 1.25))
        controller.write("stage", case=CASES[1], round=3, stage="collect")
        page.get_by_text("step 30, loss 1.2500").wait_for()
        page.get_by_role("cell", name="collect").wait_for()
        assert page.evaluate("FIGURES[0].data.lines[0].values.at(-1)") == 1.25
        assert serious_faults(page) == []
    finally:
        controller.close()
    page.get_by_text("It is over").wait_for()
    page.get_by_role("link", name="Report", exact=True).wait_for()


def test_a_figure_in_seconds_is_no_time_since_the_first_event(served: Served, open_page: Opener) -> None:
    page = open_page(served.address)
    page.goto(f"{served.address.partition('?')[0]}scatter?x=e2e_time&y=acc")
    page.wait_for_function("FIGURES[0].chart")
    assert page.evaluate("FIGURES[0].chart.axes[0].label") == "e2e_time (s)"
