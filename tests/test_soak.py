"""benches/soak.py: the table of faults is whole, the plan follows its seed, what was planted is noticed."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench_modules import imported
from utils.records import FailureClass, Stage, Verdict

Bench = Callable[[str], Any]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    yield from imported(monkeypatch)


def test_every_fault_says_how_its_round_may_end_and_why(bench: Bench) -> None:
    faults = bench("soak_faults").FAULTS
    assert len({fault.kind for fault in faults}) == len(faults) >= 9
    for fault in faults:
        assert fault.why and fault.right and fault.stages
        assert all(Stage(stage) for stage in fault.stages)
        for end in fault.right:
            verdict, *kind = end.split()
            assert Verdict(verdict).is_success is not bool(kind)
            assert all(FailureClass(each) for each in kind)


def test_the_seed_alone_says_which_fault_comes_when(bench: Bench) -> None:
    faults = bench("soak_faults")
    kinds = [*faults.OF_KIND]
    plan = faults.planned(7, 200, 10, kinds)
    assert plan == faults.planned(7, 200, 10, kinds) != faults.planned(8, 200, 10, kinds)
    assert sorted((number - 1) // 10 for number in plan) == [*range(20)]
    often = Counter(each.fault.kind for each in plan.values())
    assert often.keys() == set(kinds) and set(often.values()) <= {2, 3}
    assert all(each.stage in each.fault.stages and each.host in (1, 2) for each in plan.values())


def samples_of(accounts: Any, kib: int = 0, descriptors: int = 0, children: int = 0) -> list[Any]:
    """Two controllers' rounds, in each of which they hold so much more."""
    rounds = [(number, int(number > 20)) for number in range(1, 41)]
    return [
        accounts.Sample(number, life, 80_000 + kib * number, 12 + descriptors * (number // 5), children)
        for number, life in rounds
    ]


def test_what_a_controller_holds_more_and_more_of_is_noticed(bench: Bench) -> None:
    accounts = bench("soak_accounts")
    assert accounts.leaks(samples_of(accounts, kib=60), 60.0) == []
    assert accounts.kib_per_round(samples_of(accounts, kib=500)) == pytest.approx(500)
    (grows,) = accounts.leaks(samples_of(accounts, kib=500), 60.0)
    assert "RSS grows by 500 KiB a round" in grows
    (held,) = accounts.leaks(samples_of(accounts, descriptors=2), 60.0)
    assert "descriptors more" in held
    (child,) = accounts.leaks(samples_of(accounts, children=1), 60.0)
    assert "1 children" in child
    assert accounts.kib_per_round(samples_of(accounts)[:4]) is None
    rss, descriptors, _ = accounts.held_by(os.getpid())
    assert rss > 1000 and descriptors > 2


def test_what_a_round_leaves_on_a_host_is_noticed_when_it_has_ended(bench: Bench, tmp_path: Path) -> None:
    accounts, unit = bench("soak_accounts"), "flagperf-run-soak-round2-node0-task"
    (tmp_path / "units" / unit).mkdir(parents=True)
    (tmp_path / "runs" / "uid" / "run" / "soak:pytorch" / "round2").mkdir(parents=True)
    marked = {**os.environ, "FLAGPERF_UNIT": unit}
    with subprocess.Popen(["cat"], env=marked, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()  # it runs: before, /proc may not show its environment yet
        left = accounts.of_rounds(tmp_path, [process.pid, os.getpid()], 2)
        assert accounts.of_rounds(tmp_path, [process.pid], 1) == set()
        process.kill()
    folder = "folder runs/uid/run/soak:pytorch/round2"
    assert left == {f"unit {unit}", f"process {process.pid} of {unit}", folder}
    assert accounts.containers_left([unit, "a-round3-node1-task"], 2) == {f"container {unit}"}


def round_folder(run: Path, number: int) -> Path:
    """A round that has ended as one without a fault does."""
    folder = run / "soak:pytorch:cpu:2:1" / f"round{number}"
    for rank in (0, 1):
        node = folder / f"h{rank + 1}_noderank{rank}"
        node.mkdir(parents=True)
        (node / f"rank{rank}.out.log").write_text("".join(f"step {n} of rank {rank}\n" for n in range(1, 31)))
    (folder / "result.json").write_text("{}")
    return folder


def test_files_that_do_not_belong_to_a_run_are_noticed(bench: Bench, tmp_path: Path) -> None:
    accounts = bench("soak_accounts")
    folders = [round_folder(tmp_path, number) for number in (1, 2, 3)]
    assert accounts.strange_files(tmp_path) == set()
    (folders[0] / ".result.json.ab.partial").touch()
    (folders[1] / "result.json").unlink()
    (tmp_path / "stop_requested.tmp").touch()
    strange = accounts.strange_files(tmp_path)
    assert "stop_requested.tmp" in strange and "round2/result.json is missing" in strange
    assert any(".result.json.ab.partial" in name for name in strange)


def test_a_verdict_that_is_not_right_is_noticed(bench: Bench, tmp_path: Path) -> None:
    accounts, faults = bench("soak_accounts"), bench("soak_faults")
    folder = round_folder(tmp_path, 1)
    good = {"verdict": "CONVERGED", "failure": None}
    killed = {"verdict": "FAILED", "failure": {"class": "rank_killed", "host": "h2"}}
    plan = faults.Planned(faults.OF_KIND["rank_killed"], 2, "train")
    assert [*accounts.wrong(good, None, folder)] == [*accounts.wrong(killed, plan, folder)] == []
    assert "ended as CONVERGED" in next(iter(accounts.wrong(good, plan, folder)))
    assert "ended as FAILED rank_killed" in next(iter(accounts.wrong(killed, None, folder)))
    other = faults.Planned(plan.fault, 1, "train")
    assert [*accounts.wrong(killed, other, folder)] == ["host 'h2' is blamed, not h1"]
    log = folder / "h1_noderank0" / "rank0.out.log"
    log.write_text(log.read_text().replace("step 7 of rank", ""))
    assert [*accounts.wrong(good, None, folder)] == ["rank0.out.log has 29 of 30 steps"]


def test_the_exit_code_says_whether_all_was_right(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    soak = bench("soak_report")
    seen = {"none": Counter({"CONVERGED": 9}), "cut": Counter({"FAILED rank_failed": 1, "wrong": 1})}
    samples = samples_of(bench("soak_accounts"), kib=10)
    assert soak.report(soak.Account({"none": seen["none"]}, samples, 2, [], []), 1.0) == 0
    assert soak.report(soak.Account(seen, samples, 2, ["round 3, cut: wrong"], []), 1.0) == 1
    assert soak.report(soak.Account({"none": seen["none"]}, samples, 2, [], ["h1: unit x"]), 1.0) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["rounds"], last["left"], last["rss_kib_per_round"]) == (9, 1, 10.0)
