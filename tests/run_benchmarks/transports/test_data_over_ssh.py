"""The comparison of data with their manifest, by a real ssh session as by the local one."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.stages import data_content
from run_benchmarks.stages.checks import HostUse
from run_benchmarks.stages.data_content import DataFolder, altered_files
from run_benchmarks.transports.base import Transport
from tests.run_benchmarks.transports.conftest import Host
from utils import manifest
from utils.errors import Problem

ODD_NAMES = ["a b  c", "-rf", "$(x)'\"", "ü\t!"]


def test_files_of_any_name_are_compared_and_remembered(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_content, "SETTLED_S", -3600.0)
    data, work = tmp_path / "data set", tmp_path / "fp"
    (data / "t").mkdir(parents=True)
    names = [f"t/{name}" for name in ODD_NAMES]
    for name in names:
        (data / name).write_text(name)
    made = manifest.Manifest("x", "y", {}, {}, manifest.describe(data, names))

    async def compared(transport: Transport) -> list[Problem]:
        use = HostUse(transport.together(), ())
        listing = await use.transport.run(manifest.listing_command(made, str(data)))
        listed = manifest.listed_in(listing.stdout, str(data))
        return await altered_files(DataFolder(use, str(work), str(data), made, listed))

    assert host.use(compared) == []
    (memory,) = work.glob("data-*")
    assert len(memory.read_text().splitlines()) == 1 + len(names)  # below the start of the machine
    (data / names[1]).write_text("x" * len(names[1]))
    assert [problem.name for problem in host.use(compared)] == [names[1]]
