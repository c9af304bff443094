"""Pictures for the docs: pages of `run.py serve` in Chromium, as PNG files.

    .venv/bin/python scripts/page_pictures.py LOG_PATH OUT runs=/ chart="/scatter?x=p_train&y=acc"

LOG_PATH: a folder with result folders, whose runs should be real ones. Each further word is the name of a picture in
the folder OUT and the address of its page; of `live`, the address of a run that goes on is found in the table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

RUN_PY = Path(__file__).resolve().parents[1] / "training" / "run_benchmarks" / "run.py"
WIDTH, HEIGHT = 1200, 800
DRAWN_MS = 2500  # until charts are drawn, and a run that goes on has been asked for


def picture(page: Page, address: str, file: Path) -> None:
    """The top of a page, on a white ground."""
    page.goto(address)
    if file.stem == "live":
        page.locator('a[href$="/live"]').first.click()
        page.wait_for_url("**/live")
    page.wait_for_timeout(DRAWN_MS)
    page.screenshot(path=file)


def main() -> None:
    """Serve, take the pictures, end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log_path", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("pages", nargs="+", metavar="NAME=ADDRESS")
    arguments = parser.parse_args()
    command = [sys.executable, str(RUN_PY), "serve", "--log-path", str(arguments.log_path), "--port", "0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout  # noqa: S101 - for mypy
        site = server.stdout.readline().strip().rstrip("/")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        for word in arguments.pages:
            name, _, address = word.partition("=")
            picture(page, site + address, arguments.out / f"{name}.png")
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
