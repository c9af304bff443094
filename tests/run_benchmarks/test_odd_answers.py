"""What an engine or a host answers that no honest one would: cut, counted or refused, and of no cost to a result."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from run_benchmarks.doctor.examine import Findings
from run_benchmarks.doctor.report import LONGEST_SEEN
from run_benchmarks.hosts.base import Host
from run_benchmarks.images.store import DIGEST, MOST_DIGESTS, ImageStore, StoredImage
from run_benchmarks.names import RunId
from run_benchmarks.neighbours import MOST_RUNS, look_for_neighbours, notes_on_neighbours
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.round_result import LONGEST_TEXT as LONGEST_NOTE
from run_benchmarks.results.round_result import bounded
from run_benchmarks.round_state import RoundState
from run_benchmarks.run_log import LOGGER, LONGEST_RECORD, log_to_file
from run_benchmarks.runtimes.base import Runtime, UnitState
from run_benchmarks.runtimes.containers import ContainerRuntime
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages.checks import LONGEST_TEXT, Check, Checker, HostUse, Status, free_disk, outcome
from run_benchmarks.stages.preflight import reachable
from run_benchmarks.transports.base import CommandError, Completed
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.verbs import doctor
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.builders import make_case, observed
from tests.run_benchmarks.runtimes.conftest import settings
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict

HOST = LocalTransport("h1")
PASSWORD = "zQ8vKp3mWr7tYb2nLs6d"
DIGEST_OF = "registry.local:5000/flagperf/x@sha256:%064x"


def engine_that_prints(folder: Path, text: str) -> str:
    """FAKE. An engine whose every command prints this and ends well."""
    path = folder / "engine"
    (folder / "text").write_text(text)
    path.write_text(f"#!/bin/sh\nexec cat '{folder}/text'\n")
    path.chmod(0o755)
    return str(path)


def image_of(folder: Path, answer: str) -> StoredImage | None:
    store = ImageStore(engine_of(engine_that_prints(folder, answer)))
    return asyncio.run(store.image(HOST, "x:1"))


def test_of_an_images_digests_some_are_kept_and_what_is_none_is_not(tmp_path: Path) -> None:
    many = [DIGEST_OF % number for number in range(5_000)]
    assert image_of(tmp_path, f"sha256:abc {' '.join(many)}") == StoredImage(
        "sha256:abc", tuple(many[:MOST_DIGESTS])
    )
    odd = f"sha256:abc r@1 {'x' * 300_000} {many[5]} r@sha256:{'f' * 5_000}"
    assert image_of(tmp_path, odd) == StoredImage("sha256:abc", (many[5],))
    assert DIGEST.fullmatch("docker.io/library/python@sha256:" + "0f" * 32)


@pytest.mark.parametrize("answer", ["", "\n", "x" * 200_000, "<b>"], ids=len)
def test_what_is_no_id_of_an_image_is_refused(answer: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no image's ID") as caught:
        image_of(tmp_path, answer)
    assert len(str(caught.value)) < 10_000


def test_an_images_size_that_none_can_have_is_none(tmp_path: Path) -> None:
    for answer, size in (("100\n", 100), ("9" * 5_000, None), ("", None), ("\u0664\u00b2", None)):
        store = ImageStore(engine_of(engine_that_prints(tmp_path, answer)))
        assert asyncio.run(store.size(HOST, "x:1")) == size


@pytest.mark.parametrize("answer", ["", "\n", "9" * 5_000, "done"], ids=len)
def test_an_engine_that_tells_no_exit_code_is_an_error_of_that_host(answer: str, tmp_path: Path) -> None:
    runtime = ContainerRuntime(
        settings(tmp_path, container_engine=engine_that_prints(tmp_path, answer), runtime="docker")
    )
    with pytest.raises(CommandError, match="exit code") as caught:
        asyncio.run(runtime.wait(HOST, "unit"))
    assert "h1" in caught.value.remedy and len(str(caught.value)) < 10_000


def test_an_engine_that_tells_the_exit_code_last_is_believed(tmp_path: Path) -> None:
    command = engine_that_prints(tmp_path, "a warning\n137\n")
    runtime = ContainerRuntime(settings(tmp_path, container_engine=command, runtime="docker"))
    assert asyncio.run(runtime.wait(HOST, "unit")) == 137


class Flood(LocalTransport):
    """FAKE. A host whose every command prints one long line of this character."""

    def __init__(self, character: str) -> None:
        super().__init__("h1")
        self.character = character

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        line = self.character * 1_000_000
        return Completed(self.host, tuple(argv), 0, f"Filesystem\nx x x {line}\n", "")


@pytest.mark.parametrize(
    ("checker", "character", "status"),
    [(reachable, "x", Status.OK), (free_disk, "9", Status.WARNING), (free_disk, "x", Status.WARNING)],
)
def test_what_a_check_says_is_bounded(checker: Checker, character: str, status: Status) -> None:
    run = SimpleNamespace(flagperf_path_host="/x", min_free_disk_gib=1)
    plan: Any = SimpleNamespace(run=run, secrets=Secrets())
    use = HostUse(Flood(character), ())
    check = asyncio.run(outcome(checker, plan, cast(Runtime, FakeRuntime()), use))
    assert check.status is status
    assert "characters in all)" in check.detail and len(check.detail) < LONGEST_TEXT + 100


@pytest.mark.parametrize("raises", [False, True])
def test_a_secret_is_hidden_before_what_a_check_says_is_cut(raises: bool) -> None:
    """What is left of one that is cut nobody would know any more."""

    async def says(plan: Any, runtime: Runtime, use: HostUse) -> str:
        text = f"{'x' * (LONGEST_TEXT - 10)}{PASSWORD} is refused"
        if raises:
            raise FlagPerfError(text, remedy=text)
        return text

    plan: Any = SimpleNamespace(secrets=Secrets(held=frozenset({PASSWORD})))
    use = HostUse(Flood("x"), ())
    check = asyncio.run(outcome(says, plan, cast(Runtime, FakeRuntime()), use))
    assert PASSWORD[:5] not in check.detail + check.remedy
    assert "***" in check.detail


def test_the_doctor_hides_a_secret_before_it_cuts_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = Check("pip", Status.WARNING, f"{'x' * (LONGEST_SEEN - 10)}{PASSWORD} is refused", "mend it")

    async def found(*_: object) -> tuple[Findings, bool]:
        return Findings({"h1": [check]}, (), 1.0), True

    machine = SimpleNamespace(settings=())
    plan = SimpleNamespace(run=SimpleNamespace(machine=machine), secrets=Secrets(held=frozenset({PASSWORD})))
    monkeypatch.setattr(doctor, "_plan", lambda _: plan)
    monkeypatch.setattr(doctor, "_examine", found)
    doctor.run(Namespace(json=False))
    out = capsys.readouterr().out
    assert "***" in out
    assert PASSWORD[:5] not in out


def test_of_many_other_runs_the_first_are_named() -> None:
    runtime, state = FakeRuntime(), RoundState(make_case(), 1, "")
    journal = SimpleNamespace(write=lambda event, **facts: None)
    session: Any = SimpleNamespace(runtime=runtime, run=RunId("run20260102030405", "x", ""), journal=journal)
    for start in (0, 3 * MOST_RUNS):
        names = [f"run20260101000000-{number:06x}" for number in range(start, start + 3 * MOST_RUNS)]
        runtime.units = tuple(UnitState(name, {"flagperf.run": name}, True) for name in names)
        asyncio.run(look_for_neighbours(session, state, [Host("h1", "h1", HOST)]))
    assert len(state.neighbours["h1"]) == MOST_RUNS
    (note,) = notes_on_neighbours(state)
    assert len(note) < 1_000 and f"-000013 and {MOST_RUNS - 20} more ran there too" in note


def test_no_note_and_no_failure_makes_a_result_that_nobody_can_read() -> None:
    failure = Failure(
        Verdict.FAILED, Stage.DEPLOY, FailureClass.COMMAND_FAILED, "h1", "x" * 10**6, "y" * 10**6, "z" * 10**6
    )
    seen = replace(observed(make_case()), failure=failure, notes=("n" * 10**6, "short"))
    result = bounded(seen)
    assert len(json.dumps(result.as_dict())) < 4 * LONGEST_NOTE + 10_000
    assert result.notes[0].endswith("(1000000 characters in all)") and result.notes[1] == "short"


def test_a_record_of_the_log_is_bounded(tmp_path: Path) -> None:
    with log_to_file(tmp_path / "log", "info"):
        LOGGER.info("x" * 10**6)
        LOGGER.bind(detail="y" * 10**6).error("z")
    first, _, second = (tmp_path / "log").read_text().splitlines()
    assert max(len(first), len(second)) < LONGEST_RECORD + 100


def test_an_honest_error_is_left_as_it_is() -> None:
    async def broken(*_: object) -> str:
        raise FlagPerfError("a message", remedy="a remedy")

    plan: Any = SimpleNamespace(secrets=Secrets())
    check = asyncio.run(outcome(broken, plan, cast(Runtime, FakeRuntime()), HostUse(HOST, ())))
    assert (check.detail, check.remedy) == ("a message", "a remedy")
