"""A real browser: Debian's Chromium without a window, driven by Playwright; and what every page is held to.

The browser lives as long as the tests of one file: while it does, no test there may call `asyncio.run`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = 390  # CSS pixels
LIMIT_MS = 90_000  # it ends what hangs


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser; where there is none these tests are skipped, and fail where `CI` is set."""
    program = shutil.which("chromium")
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "there is no chromium: apt-get install chromium"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # as root it has no sandbox of its own; /dev/shm is small in containers
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


Opener = Callable[..., "Page"]


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Opener]:
    """Opens an address or a file in a page of its own; afterwards none may have had an error or asked another host.

    Its arguments: the address, and options of Playwright's `new_context` (color_scheme="dark", viewport, ...).
    """
    with _watched_pages(chromium) as opener:
        yield opener


@contextmanager
def _watched_pages(browser: Browser) -> Iterator[Opener]:
    contexts, wrong = [], []

    def opener(address: str | Path, **options: Any) -> Page:
        address = address.as_uri() if isinstance(address, Path) else address
        contexts.append(context := browser.new_context(**options))
        context.set_default_timeout(LIMIT_MS)
        page = context.new_page()
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.extend(_foreign(request.url, address)))
        page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
        page.goto(address)
        return page

    yield opener
    for context in contexts:
        context.close()
    assert wrong == []


def _foreign(asked: str, address: str) -> list[str]:
    """The address that was asked for, if it leads anywhere else than to the page's own server or file."""
    own, other = urlsplit(address), urlsplit(asked)
    is_own = other.scheme in ("data", "blob") or (other.scheme, other.netloc) == (own.scheme, own.netloc)
    return [] if is_own and not (other.scheme == "file" and asked.partition("#")[0] != address) else [asked]


def serious_faults(page: Page) -> list[str]:
    """What axe-core has against a page, of what it calls serious or critical: contrast, names, roles, order, ..."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]
