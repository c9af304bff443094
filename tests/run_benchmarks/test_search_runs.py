"""Runs of a search, from plan to report. A FAKE launcher says what controller and workers would say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.results.round_result import RoundResult
from tests.ports import free_port
from tests.run_benchmarks.faults.test_resume import killed_after
from tests.run_benchmarks.plan.tree import VENDOR
from tests.run_benchmarks.stages.checked_host import prepare
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from tests.search_log import lines_of_search, two_trials
from utils.case_form import ROLES_TOKEN
from utils.records import FailureClass, Verdict
from utils.search.events import Worker

# Events of 410 s, which are said to have begun so long ago.
LAUNCHER = f"""\
import hmac, json, os, sys, time
from pathlib import Path

def worker_token(token, worker):
    digest = hmac.new(token.encode(), str(worker).encode(), "sha256").hexdigest()
    return f"{{worker}}.{{digest}}"


def tokens_of_node(token, node_rank, workers):
    return token


def main():
    lines, waits_for = LINES, WAITS_FOR
    folder = Path(sys.argv[sys.argv.index("--log-dir") + 1])
    behaviour = Path(sys.argv[sys.argv.index("--data_dir") + 1], "behaviour")
    is_broken = behaviour.exists() and behaviour.read_text() == "fail"
    shift = int(time.time() * 1000) - json.loads(lines[0].partition(" ")[2])["metadata"]["time_ms"] - 410_000
    while sys.argv[sys.argv.index("--node-rank") + 1] != "0":
        time.sleep(60)
    with (folder / "controller.out.log").open("a") as log:
        for line in lines:
            event = json.loads(line.partition(" ")[2])
            event["metadata"]["time_ms"] += shift
            while event["event"] == "SEARCH_END" and waits_for and not Path(waits_for).exists():
                time.sleep(0.2)
            if event["event"] == "FINISHED":
                event["value"]["e2e_time"] = 0.1
                if is_broken:
                    break
            log.write("[PerfLog] " + json.dumps(event) + "\\n")
            log.flush()
        if is_broken:
            token = os.environ['{ROLES_TOKEN}']
            log.write(f"RuntimeError: the disk of {{token}} is broken; {{worker_token(token, 1)}} was told\\n")
            sys.exit(3)


if __name__ == "__main__":
    main()
"""
BASE = 'case_kind = "measure"\nsearch_seconds = 600\nranks_per_worker = 1\n'
CASE = """\
class Case:
    roles = ("controller", "worker")

    def work(self, engine, perf_log): ...
"""


def launcher(waits_for: Path | None = None, nodes: int = 1) -> str:
    """`utils/roles.py`; on the first node its controller ends the search once there is this file.

    Its two workers have a chip each, on one node or on two.
    """
    records = [
        replace(each, ranks=1, node_rank=each.worker if nodes > 1 else 0)
        if isinstance(each, Worker)
        else each
        for each in two_trials()
    ]
    text = LAUNCHER.replace("LINES", repr(lines_of_search(records)), 1)
    return text.replace("WAITS_FOR", repr(waits_for and str(waits_for)), 1)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    made = make_whole_run(tmp_path, free_port(), monkeypatch)
    made.tree.write("acme/vendor.py", VENDOR.replace('["acme-list"]', r'["printf", r"Acme X1\nAcme X1\n"]'))
    made.tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    made.configure(f'CASES = {{"toy:pytorch:X1:1:2:1": "{tmp_path}/data"}}\n')
    (made.tree.training / "benchmarks/toy/pytorch/run_pretraining.py").unlink()
    made.tree.write("benchmarks/toy/pytorch/case.py", CASE)
    made.tree.write("benchmarks/toy/pytorch/config/_base.py", BASE)
    made.tree.write("utils/roles.py", launcher())
    prepare(tmp_path / "data")
    return made


def result_of(run: WholeRun) -> RoundResult:
    (result,) = load_run(run.result, by_name_alone).results
    return result


def test_a_search_is_measured_and_reported(run: WholeRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main("run") == 0
    result = result_of(run)
    assert result.verdict is Verdict.MEASURED and result.failure is None
    assert result.figures["accuracy"].value == 0.9
    assert result.search is not None and result.search.is_trial_run
    assert '<span class="good">Succeeded</span> a trial run' in (run.result / "report.html").read_text()
    capsys.readouterr()
    assert run.main("status", str(run.result)) == 0
    assert "best accuracy 0.9000" in capsys.readouterr().out
    assert run.units_left() == []


def test_a_run_is_taken_up_while_it_searches(run: WholeRun) -> None:
    killed_after(run, "train")
    assert run.main("resume", str(run.result)) == 0
    result = result_of(run)
    assert result.verdict is Verdict.MEASURED and result.figures["epochs"].value == 4
    assert any("taken up at the stage train" in note for note in result.notes)


def test_a_controller_that_fails_ends_the_round_and_is_blamed(run: WholeRun) -> None:
    run.behave("fail")
    assert run.main("run") == 1
    result = result_of(run)
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.RANK_FAILED
    assert result.failure.message.startswith("the search's controller on node rank 0 ended with exit code 3")
    assert "the disk of *** is broken; *** was told" in result.failure.message
    assert result.failure.file.endswith("controller.out.log")
    assert result.figures["accuracy"].caveat.startswith("until the search was cut off")
    log = next(iter((run.result).rglob("controller.out.log"))).read_text()
    said = re.search(r"the disk of (\S+) is broken; (\S+) was told", log)
    assert said
    for path in run.result.rglob("*"):
        if path.is_file() and path.name != "controller.out.log":
            text = path.read_text(errors="replace")
            assert not any(token in text for token in said.groups()), path
