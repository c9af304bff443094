"""A run whose result folder has no room any more: a file system in memory that is really full."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import judging, round_verdicts
from run_benchmarks.commands import run_command
from run_benchmarks.full_disk import FULL
from run_benchmarks.journal import Journal
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round_state import has_record, judged
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import SCRIPT, WholeRun, make_whole_run

# Between its first step and its end.
FILLS = """
for size in (2**16, 1):
    try:
        with open({filler!r}, "ab", buffering=0) as stream:
            while stream.write(bytes(size)):
                pass
    except OSError:
        pass
"""

# In the place of the host's Python: it starts no task, and behind nine attempts at it ends what nothing else ends.
NO_ROOM = """#!/bin/sh
case "$*" in *process_unit.py*start*flagperf.role=task*)
    echo >>{starts}
    [ "$(wc -l <{starts})" -le 9 ] || exit 1
    dd if=/dev/zero of={filler} bs=4k 2>/dev/null
    echo "No space left on device" >&2
    exit 125
esac
exec {python} "$@"
"""


@pytest.fixture
def run(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    """Its results lie on the small disk, which its task fills."""
    with reserved_port() as port:
        whole = make_whole_run(tmp_path, port, monkeypatch)
        script = SCRIPT.replace("time.sleep(0.05)\n", FILLS.format(filler=f"{disk}/filler"), 1)
        whole.tree.write("benchmarks/toy/pytorch/run_pretraining.py", script)
        yield whole


def test_no_file_is_named_that_could_not_be_written_and_once_there_is_room_the_run_is_taken_up(
    run: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main() == 1
    told = capsys.readouterr().err
    (folder,) = (run.folder / "result").glob("run*")
    for name in ("summary.json", "summary.md", "report.html", "result.json"):
        assert not list(folder.rglob(name)), name
    assert told.count("cannot be written; the run goes on") == 1 and "Traceback" not in told
    assert "could not be written" not in told and "report.html" not in told and "has all" not in told
    assert f"take the run up: {run_command('resume', str(folder), '--config', str(run.tree.config))}" in told
    assert run.main("status") == 0
    assert f"its controller ended and could not write all results ({FULL})" in capsys.readouterr().out

    (folder.parent / "filler").unlink()
    assert run.main("resume") == 0
    assert "died" not in capsys.readouterr().err
    assert [each["verdict"] for each in run.summary["rounds"]] == ["CONVERGED"]
    assert (folder / "report.html").is_file()
    assert not list((run.host / "runs").rglob("*")), "what stayed on the host for want of room is home"
    kept = [(folder / name).stat().st_blocks * 512 for name in ("journal.jsonl", "flagperf_run.log")]
    assert max(kept) < 2**17, "the room that was kept for them is given back"


def test_a_round_that_fails_by_its_hosts_fault_on_a_full_disk_is_not_run_again_without_end(
    run: WholeRun, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its host says that it has no room, while the controller has none to write that down."""
    python = run.folder / "python"
    python.write_text(
        NO_ROOM.format(filler=disk / "filler", starts=run.folder / "starts", python=sys.executable)
    )
    python.chmod(0o755)
    toy = f"{run.folder}/data"
    cases = f'{{"toy:pytorch:X1:1:1:2": "{toy}", "toy:pytorch_2.1:X1:1:1:1": "{toy}"}}'
    run.configure(f'PROCESS_PYTHON = "{python}"\nCASES = {cases}\n')
    assert run.main() == 1
    told = capsys.readouterr().err
    assert told.count("(disk_full)") == 3
    assert "the run is not written whole: the result of a round could not be written" in told
    (journal,) = disk.glob("run*/journal.jsonl")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    begun = [each for each in entries if each["event"] == "round_started"]
    assert [(each["case"], each["round"]) for each in begun] == [
        ("toy:pytorch:X1:1:1:2", 1),
        ("toy:pytorch:X1:1:1:2", 2),
        ("toy:pytorch_2.1:X1:1:1:1", 1),
    ]


def test_the_journal_tells_what_happens_on_a_full_disk_and_gives_its_room_back(disk: Path) -> None:
    path, texts = disk / "journal.jsonl", ["x" * 2**10] * 2**4
    journal = Journal(path)
    fill(disk)
    assert os.statvfs(disk).f_bavail == 0
    for number in range(32):  # half of its room
        journal.write("stage", number=number, texts=texts)
    read = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["number"] for each in read] == [*range(32)] and read[-1]["texts"] == texts
    journal.close()
    assert os.statvfs(disk).f_bavail > 0


def fill(disk: Path) -> None:
    exec(FILLS.format(filler=f"{disk}/filler"))  # noqa: S102 - as a task does


@pytest.fixture
def unwritten(run: WholeRun, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run whose round was good, and whose result.json found no room; now there is some."""

    def judged_on_a_full_disk(*arguments: Any) -> RoundResult:
        fill(disk)
        return judged(*arguments)

    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", SCRIPT)
    with monkeypatch.context() as patched:
        patched.setattr(judging, "judged", judged_on_a_full_disk)
        assert run.main() == 1
    (disk / "filler").unlink()
    (folder,) = disk.glob("run*")
    assert list(folder.rglob("round.json")) and not list(folder.rglob("result.json"))
    return folder


def ends_in(folder: Path) -> list[dict[str, Any]]:
    entries = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [each for each in entries if each["event"] in ("round_ended", "run_ended")]


def test_a_good_round_whose_result_found_no_room_is_not_called_altered_once_it_was_taken_up(
    run: WholeRun, unwritten: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ended,) = ends_in(unwritten)
    assert (ended["verdict"], ended["unwritten"]) == ("FAILED", True)
    assert run.main("resume") == 0
    assert [each.get("verdict") for each in ends_in(unwritten)] == ["FAILED", "CONVERGED", None]
    (path,) = unwritten.rglob("result.json")
    assert json.loads(path.read_text())["figures"] == run.summary["rounds"][0]["figures"]
    capsys.readouterr()
    assert run.main("show", str(unwritten)) == 0
    assert "altered" not in "".join(capsys.readouterr())

    before = {each: each.read_bytes() for each in unwritten.rglob("*.json*")}
    assert run.main("resume", str(unwritten)) == 2
    assert {each: each.read_bytes() for each in unwritten.rglob("*.json*")} == before
    path.write_text(path.read_text().replace('"CONVERGED"', '"NOT_CONVERGED"'))
    capsys.readouterr()
    run.main("show", str(unwritten))
    assert "one was altered" in "".join(capsys.readouterr())


def test_what_was_put_in_the_place_of_a_result_that_found_no_room_is_not_believed(
    run: WholeRun, unwritten: Path
) -> None:
    """A controller that died when it had just written it has left one, too."""
    (observation,) = unwritten.rglob("round.json")
    planted = observation.with_name("result.json")
    planted.write_text('{"verdict": "NOT_CONVERGED"}')
    assert run.main("resume") == 0
    result = json.loads(planted.read_text())
    assert result["verdict"] == "CONVERGED" and result["figures"] == run.summary["rounds"][0]["figures"]


def test_a_verdict_that_the_journal_has_of_a_written_result_stays_there(
    run: WholeRun, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its result.json was removed and its log altered before the run was taken up."""
    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", SCRIPT)
    assert run.main() == 0
    journal = run.result / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"run_ended"' not in line))
    (path,) = run.result.rglob("result.json")
    for each in (path, run.result / "summary.json"):
        each.unlink()
    log = next(path.parent.glob("*/rank0.out.log"))
    log.write_text(log.read_text().replace('"converged": true', '"converged": false'))
    assert run.main("resume") == 1
    assert [each.get("verdict") for each in ends_in(run.result)] == ["CONVERGED", None]
    capsys.readouterr()
    run.main("show", str(run.result))
    assert "one was altered" in "".join(capsys.readouterr())


def test_a_result_that_finds_no_room_again_ends_no_run(
    run: WholeRun, unwritten: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There was room for all but the result.json."""

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(round_verdicts, "write_json", no_room)
        assert run.main("resume") == 1
    assert [each["event"] for each in ends_in(unwritten)] == ["round_ended"]
    assert not (unwritten / "summary.json").exists()
    assert run.main("resume") == 0
    assert [each.get("verdict") for each in ends_in(unwritten)] == ["FAILED", "CONVERGED", None]


def test_a_round_of_which_something_was_written_has_ended(tmp_path: Path) -> None:
    assert not has_record(tmp_path)
    (tmp_path / "round.json").touch()
    assert has_record(tmp_path)
