"""A real Slurm of which one command or another fails now and then, as where slurmctld is started anew."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts import answers
from run_benchmarks.hosts.base import AllocationError, NoAnswerError
from run_benchmarks.hosts.slurm import queue, tenure
from run_benchmarks.hosts.slurm.allocator import SlurmHosts
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.transports.conftest import eventually
from tests.slurm.slurm import Slurm

RUN = "run20260102030405-abcdef"
LIMIT_S = 240.0
TWO = replace(make_case(), hosts=())
AGAIN = replace(TWO, hosts=("n1", "n2"))
SILENT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
# Before the real one. Of calls with a word in them so many fail, behind the first `answered`; where the answer is lost,
# it was done.
PROGRAM = """\
#!/bin/sh
case "$*" in *{word}*) ;; *) exec {real} "$@";; esac
echo asked >>{folder}/asked
asked=$(($(wc -l <{folder}/asked) - {answered}))
[ "$asked" -gt 0 ] && [ "$asked" -le {count} ] || exec {real} "$@"
[ -z "{is_done}" ] || {real} "$@" >/dev/null
echo "{said}" >&2
exit 1
"""


class Failing:
    """FAKE: a command of Slurm's before the real one, which fails."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._asked, self._bin, self._patch = folder / "asked", folder / "bin", monkeypatch
        self._bin.mkdir()

    def fail(
        self,
        name: str,
        word: str,
        count: int,
        said: str = SILENT,
        *,
        is_done: bool = False,
        answered: int = 0,
    ) -> None:
        real, program = shutil.which(name), self._bin / name
        program.write_text(
            PROGRAM.format(
                word=word,
                real=real,
                folder=self._bin.parent,
                count=count,
                said=said,
                is_done=is_done or "",
                answered=answered,
            )
        )
        program.chmod(0o755)
        self._patch.setenv("PATH", f"{self._bin}:{os.environ['PATH']}")

    def mend(self) -> None:
        shutil.rmtree(self._bin)

    def asked(self) -> int:
        return len(self._asked.read_text().splitlines()) if self._asked.exists() else 0


@pytest.fixture
def failing(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Failing:
    monkeypatch.setattr(answers, "PAUSES_S", (0.1, 0.1, 0.1))
    monkeypatch.setattr(tenure, "LOOK_S", 0.5)
    monkeypatch.setattr(queue, "LONGEST_S", 0.5)
    return Failing(tmp_path, monkeypatch)


def in_time(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(bounded())


def hosts_of(**settings: Any) -> SlurmHosts:
    return SlurmHosts(SlurmSettings(**settings), RUN, 2, lambda job, node: LocalTransport(node))


async def nodes_of_a_round(case: Any = TWO, **settings: Any) -> list[str]:
    async with hosts_of(**settings).acquire(case) as allocation:
        return [host.name for host in allocation.hosts]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("squeue", "--states=all"),
        ("squeue", "%N"),
        ("scontrol", "node"),
        ("scancel", "--name"),
        ("sbatch", "--parsable"),
    ],
    ids=["found again", "gone", "addresses", "given back", "sent"],
)
def test_one_answer_that_is_missing_costs_no_round(
    slurm: Slurm, failing: Failing, name: str, word: str
) -> None:
    failing.fail(name, word, 1)
    assert in_time(nodes_of_a_round()) == ["n1", "n2"]
    assert failing.asked() > 1
    assert slurm.jobs() == {}


def test_a_job_whose_answer_was_lost_is_not_sent_again(slurm: Slurm, failing: Failing) -> None:
    async def scenario() -> None:
        async with hosts_of().acquire(TWO):
            assert len(slurm.jobs()) == 1

    failing.fail("sbatch", "--parsable", 1, is_done=True)
    in_time(scenario())
    assert failing.asked() == 1 and slurm.jobs() == {}


def test_what_slurm_refuses_is_said_at_once(slurm: Slurm, failing: Failing) -> None:
    failing.fail("sbatch", "--parsable", 0)
    with pytest.raises(AllocationError, match="invalid partition"):
        in_time(nodes_of_a_round(options=("--partition=none",)))
    assert failing.asked() == 1


@asynccontextmanager
async def a_round(slurm: Slurm) -> AsyncIterator[int]:
    """The job of a round that goes on, and whose controller is another."""
    async with hosts_of().acquire(TWO):
        (job,) = slurm.jobs()
        yield job


@pytest.mark.parametrize(
    ("name", "word"), [("squeue", "--states=all"), ("scontrol", "job"), ("scontrol", "node")]
)
@pytest.mark.parametrize("said", [SILENT, "slurm error: Access/permission denied"], ids=["silent", "denied"])
def test_a_job_of_which_nothing_is_known_is_left_alone(
    slurm: Slurm, failing: Failing, name: str, word: str, said: str
) -> None:
    """That of a round that is taken up, which trains there: it goes on in it once Slurm answers."""

    async def scenario() -> None:
        async with a_round(slurm) as job:
            failing.fail(name, word, 10_000, said)
            with pytest.raises(NoAnswerError):
                await nodes_of_a_round(AGAIN)
            assert slurm.jobs() == {job: "RUNNING"}
            failing.mend()
            assert await nodes_of_a_round(AGAIN) == ["n1", "n2"]

    in_time(scenario())
    assert slurm.jobs() == {}


@pytest.mark.parametrize(
    ("name", "word"), [("squeue", "--states=all"), ("scontrol", "job"), ("scontrol", "node")]
)
def test_a_job_of_a_round_that_is_taken_up_stays_where_who_waits_for_it_is_cancelled(
    slurm: Slurm, failing: Failing, monkeypatch: pytest.MonkeyPatch, name: str, word: str
) -> None:
    monkeypatch.setattr(answers, "PAUSES_S", (LIMIT_S,))

    async def scenario() -> None:
        async with a_round(slurm) as job:
            failing.fail(name, word, 10_000)
            waiting = asyncio.ensure_future(nodes_of_a_round(AGAIN))
            await eventually(lambda: failing.asked() > 0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert slurm.jobs() == {job: "RUNNING"}
            failing.mend()
            assert await nodes_of_a_round(AGAIN) == ["n1", "n2"]

    in_time(scenario())
    assert slurm.jobs() == {}


def test_a_slurm_that_falls_silent_once_the_job_was_found_is_not_waited_for_for_ever(
    slurm: Slurm, failing: Failing
) -> None:
    async def scenario() -> None:
        async with a_round(slurm) as job:
            failing.fail("scontrol", "show", 10_000, answered=1)
            with pytest.raises(NoAnswerError):
                await nodes_of_a_round(AGAIN)
            assert slurm.jobs() == {job: "RUNNING"}
            failing.mend()
            assert await nodes_of_a_round(AGAIN) == ["n1", "n2"]

    in_time(scenario())
