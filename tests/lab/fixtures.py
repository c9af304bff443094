"""pytest's way to the lab: the fixture `lab`, and what happens where no lab can be made."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.lab import images as lab_images
from tests.lab.lab import Lab
from tests.lab.requirements import why_not

NO_LAB = "no lab on this machine"


class LabFactory:
    """Hands out the one lab of a worker of the test session; making one takes about a second.

    `lab(hosts=2, images=["name:tag"])` returns a lab with these hosts, none of them killed, cut, slow or
    frozen, and without containers. It is the lab of the test before, with what that one left on the disks, if
    the arguments are the same and `fresh` is not asked for. Further arguments are those of `Lab`.
    """

    def __init__(self) -> None:
        self._lab: Lab | None = None
        self._made_of: tuple[object, ...] = ()

    def __call__(
        self, hosts: int = 2, *, images: Sequence[str] = (), fresh: bool = False, **options: Any
    ) -> Lab:
        made_of = (hosts, tuple(lab_images.find(images)), repr(options))
        if self._lab is not None and made_of == self._made_of and not fresh:
            self._lab.reset()
            return self._lab
        self.close()
        lab = Lab(hosts, images=images, **options)
        lab.up()
        self._lab, self._made_of = lab, made_of
        return lab

    def close(self) -> None:
        """Takes the lab down, for a test that makes its own."""
        lab, self._lab = self._lab, None
        if lab is not None:
            lab.down()


@pytest.fixture(scope="session")
def lab() -> Iterator[LabFactory]:
    """The session's lab; see `LabFactory`."""
    # A CI system that loses patience sends SIGTERM, which by default would leave the hosts running.
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", returncode=143))
    factory = LabFactory()
    try:
        yield factory
    finally:
        factory.close()
        signal.signal(signal.SIGTERM, before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test that uses the fixture with `lab`."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker("lab")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a lab test where there can be no lab; in CI, where that would hide a hole, it fails."""
    if item.get_closest_marker("lab") is None or (reason := why_not()) is None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{NO_LAB}, and CI is set: {reason}", pytrace=False)
    pytest.skip(f"{NO_LAB}: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says in one line that lab tests were skipped, so that nobody takes the run for a whole one."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", []) if NO_LAB in str(report.longrepr)
    ]
    if skipped:
        line = f"{len(skipped)} LAB TESTS SKIPPED: {NO_LAB}: {why_not()}"
        terminalreporter.write_line(line, red=True, bold=True)
