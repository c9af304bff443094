"""Whatever ranks and monitors print, a round has its result, a run its summary, and the controller its memory."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import round_state
from run_benchmarks.display.base import Display
from run_benchmarks.display.drawing import round_panel
from run_benchmarks.display.lines import training_line
from run_benchmarks.display.power_meter import Power, PowerMeter
from run_benchmarks.display.progress import MOST_OPERATIONS, Progress
from run_benchmarks.display.rows import UNICODE
from run_benchmarks.follow import _Lines
from run_benchmarks.frameworks import open_framework
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.evidence import NodeLogs, explain
from run_benchmarks.results.judge import judge
from run_benchmarks.results.load import load_run
from run_benchmarks.results.planned import planned
from run_benchmarks.results.rank_logs import read_rank_logs
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.round_telemetry import telemetry_outcome
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.stages.watch import Ended, Outcome
from run_benchmarks.training_state import TrainingState
from tests.ports import reserved_port
from tests.run_benchmarks.builders import (
    END_MS,
    FINISHED,
    START_MS,
    conclude,
    make_case,
    make_nodes,
    observed,
    training_events,
    with_own_script,
    write_rank_log,
)
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.whole_run import make_whole_run
from utils.events import Event, EventName, format_line, parse_line
from utils.records import FailureClass, Verdict
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo, ticks_of
from utils.text_files import END_BYTES, LONGEST_LINE, last_lines_of

CASE = replace(make_case(["h1"]), parameters={"target_mlm_accuracy": 0.3})
HUGE = "9" * 400


def concluded(folder: Path, *lines: str, case: Any = CASE, telemetry: str = "") -> RoundResult:
    """The result of a whole training with `lines` in its log before FINISHED, with the run's summary beside it."""
    node = folder / case.settings.name / "round1" / "h1_noderank0"
    node.mkdir(parents=True)
    *before, finished = map(format_line, training_events())
    (node / "rank0.out.log").write_text("".join(f"{line}\n" for line in (*before, *lines, finished)))
    if telemetry:
        (node / TELEMETRY_FILE).write_text(telemetry)
    result = conclude(case, observed(case), node.parent)
    run = Run("run1", "run1-x", "2026-01-02", 0, (result,), {})
    write_summary(folder, run)
    assert json.loads((node.parent / "result.json").read_text()) == json.loads(json.dumps(result.as_dict()))
    assert load_run(folder, by_name_alone).results == (result,)
    assert (folder / "summary.md").read_text(encoding="utf-8").startswith("# run1")
    return result


LINES = {
    "INIT_START with Infinity": '{"event": "INIT_START", "value": {"config": {"lr": Infinity}, "changed": ["lr"]}}',
    "an overflow": '{"event": "INIT_START", "value": {"config": {"lr": 1e999}, "changed": ["lr"]}}',
    "half a surrogate pair": r'{"event": "INIT_END", "value": {"precision": "\ud800", "precision_reason": "\ud800"}}',
    "continued, skipped is a number": '{"event": "INIT_END", "value": {"continued": {"step": 1, "skipped": 5}}}',
    "continued, changed is a number": '{"event": "INIT_END", "value": {"continued": {"step": 1, "changed": 5}}}',
    "continued, step is a text": '{"event": "INIT_END", "value": {"continued": {"step": "1"}}}',
    "brackets": '{"event": "EVALUATE", "value": ' + "[" * 200_000,
    "a hundred levels": '{"event": "INIT_START", "value": {"config": ' + "[" * 100 + "]" * 100 + "}}",
    "an integer of 400 digits": f'{{"event": "STEP_END", "value": {{"global_steps": {HUGE}, "loss": {HUGE}}}}}',
    "a time of 400 digits": f'{{"event": "HOOKS", "value": {{}}, "metadata": {{"time_ms": {HUGE}, "rank": 0}}}}',
    "an integer of 5000 digits": f'{{"event": "STEP_END", "value": {{"global_steps": {"9" * 5000}}}}}',
    "flops of 400 digits": f'{{"event": "HOOKS", "value": {{"flops": {{"x": {HUGE}}}}}}}',
}


@pytest.mark.parametrize("name", LINES)
def test_no_line_loses_a_round(name: str, tmp_path: Path) -> None:
    """They stand where the driver writes them too; a script of the case's own may write them anywhere."""
    result = concluded(tmp_path, f"[PerfLog] {LINES[name]}", case=with_own_script(CASE))
    assert (result.verdict, result.failure) == (Verdict.CONVERGED, None)
    assert result.figures["p_train"].value == 125.0


@pytest.mark.parametrize("name", LINES)
def test_no_line_breaks_what_is_shown_of_a_round(name: str, log_lines: LogLines) -> None:
    class Seen(Display):
        def event(self, event: Event) -> None:
            progress.event(event)

    state, display, nodes = TrainingState(), Seen(), make_nodes(["h1"])
    progress = Progress(nodes, state, dict.fromkeys(nodes, "train"))

    def take(line: str) -> None:
        event = parse_line(line)
        if event is not None:
            state.update(event)
            display.event(event)
            assert training_line(state) and round_panel(progress, 80, 24, UNICODE)

    lines = _Lines(take)
    *before, finished = map(format_line, training_events())
    text = "\n".join((*before, f"[PerfLog] {LINES[name]}", finished, ""))
    asyncio.run(lines.feed(text.encode()))
    assert state.phase == "finished" and not log_lines.messages


@pytest.mark.parametrize(
    "values",
    [
        {"num_trained_samples": 1e308, "raw_train_time": 1e-10},
        {"final_mlm_accuracy": float("nan")},
        {
            "figures": {
                "rate": {"value": 10**400, "unit": "GB/s", "window": "all", "better": None, "definition": "x"}
            }
        },
        {"metric": ["x"], "precision": {"a": 1}, "flops_formula": 5, "notes": [[]], "operations": 5},
        {"mem_total_bytes": 10**400, "model_flops_per_sample": 1e308, "failed_checkpoints": 10**200},
        {"continued": {"step": 1, "skipped": 5, "changed": {"x": [1]}, "other_code": []}},
        {"continued": {"step": 10**400, "samples": "x"}},
    ],
    ids=str,
)
def test_no_value_of_finished_loses_a_round(values: dict[str, Any], tmp_path: Path) -> None:
    finished = Event(EventName.FINISHED, {**FINISHED, **values}, END_MS)
    line = format_line(finished).replace("Infinity", "1e999")
    result = concluded(tmp_path, case=CASE)
    other = tmp_path / "other" / CASE.settings.name / "round1"
    write_rank_log(other / "h1_noderank0", training_events()[:-1], tail=line)
    result = conclude(CASE, observed(CASE), other)
    assert result.failure is None or result.failure.failure_class is not FailureClass.CONTROLLER_ERROR
    assert json.dumps(json.loads((other / "result.json").read_text()), allow_nan=False)
    write_summary(other, Run("run1", "run1-x", "2026-01-02", 0, (result,), {}))


def test_what_breaks_the_judge_costs_the_round_its_figures_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    """A fault of our own: a result that no file can hold."""
    judged = round_state.without_secrets
    broken = {"x": object()}
    monkeypatch.setattr(round_state, "without_secrets", lambda *given: replace(judged(*given), facts=broken))
    result = concluded(tmp_path)
    assert result.failure is not None and result.failure.failure_class is FailureClass.CONTROLLER_ERROR
    assert set(result.figures) == {"round_time"}
    assert any("Traceback" in detail for detail in log_lines.details)


def test_a_summary_that_cannot_be_made_to_be_read_is_there_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> str:
        raise ValueError("a fault")

    monkeypatch.setattr("run_benchmarks.results.summary.results_tables", broken)
    concluded(tmp_path)
    assert "summary.json has all" in (tmp_path / "summary.md").read_text()


def test_a_configuration_with_infinity_makes_a_plan() -> None:
    case = with_own_script(replace(CASE, parameters={"clip": float("inf"), "x": [float("nan")]}))
    content = json.loads(json.dumps(plain(case), allow_nan=False))
    assert content["parameters"] == {"clip": "inf", "x": ["nan"]}


LIAR = """\
import json, os, sys, time
from pathlib import Path

counter = Path(sys.argv[sys.argv.index("--data_dir") + 1], "rounds")
number = len(counter.read_text()) if counter.exists() else 0
counter.write_text("x" * (number + 1))
node = Path(os.readlink("/proc/self/fd/1")).parent
(node / "telemetry.jsonl").open("a").write('{"kind": "sample", "time_ms": null}\\n' * 5)
for name, value in (
    ("INIT_START", {"config": {"x": float("inf")}, "changed": ["x"]}),
    ("INIT_END", {"continued": {"step": 1, "skipped": 5}}),
    ("TRAIN_START", {"text": "\\ud800", "many": 10**400}),
    ("TRAIN_END", {}),
    ("FINISHED", {"converged": True, "global_steps": number, "final_accuracy": 1e999}),
):
    record = {"event": name, "value": value, "metadata": {"time_ms": int(time.time() * 1000), "rank": 0}}
    print("[PerfLog] " + json.dumps(record), flush=True)
print("[PerfLog] " + '{"event": ' + "[" * 200_000)
"""


def test_a_run_outlives_whatever_its_rounds_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real run of two rounds, of which the first took no step and says that it converged."""
    with reserved_port() as port:
        run = make_whole_run(tmp_path, port, monkeypatch)
        run.configure('CASES = {"toy:pytorch:X1:1:1:2": "%s"}\n' % (tmp_path / "data"))
        run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", LIAR)
        assert run.main() == 1
    first, second = run.summary["rounds"]
    assert (first["verdict"], first["failure"]["message"]) == (
        "INVALID",
        "global_steps is 0: nothing was trained",
    )
    assert (second["verdict"], second["failure"]) == ("CONVERGED", None)
    for result in (first, second):
        assert any("1 line(s) with [PerfLog] that hold no event" in note for note in result["notes"])
    assert (run.result / "summary.md").is_file() and not run.units_left()


def test_an_event_of_more_values_than_any_has_is_none() -> None:
    line = '[PerfLog] {"event": "EVALUATE", "value": {"x": [%s1]}}'
    assert parse_line(line % ("1, " * 40_000)) is not None
    assert parse_line(line % ("1, " * 60_000)) is None
    assert parse_line(line % ("[], " * 30_000)) is None


def test_a_measurement_of_endless_operations_is_not_remembered_whole() -> None:
    nodes, state = make_nodes(["h1"]), TrainingState()
    case = replace(nodes[0].case, parameters={"case_kind": "measure"})
    progress = Progress(tuple(replace(node, case=case) for node in nodes), state)
    for _ in range(MOST_OPERATIONS + 5):
        progress.event(Event(EventName.STEP_END, {"metric": "x", "x": 1.0}))
    assert len(progress.operations) == MOST_OPERATIONS


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "values",
    [
        {"metric": LONG, f"final_{LONG}": 0.2},
        {"converged": [LONG] * 5},
        {"precision": LONG},
        {"begun_anew": LONG},
        {"continued": {"step": 1, "run": LONG, "skipped": [LONG] * 1_000}},
    ],
    ids=lambda values: next(iter(values)),
)
def test_no_text_of_a_result_is_longer_than_a_reader_reads(values: dict[str, Any], tmp_path: Path) -> None:
    *events, finished = training_events()
    begun = Event(EventName.INIT_END, values)
    write_rank_log(
        tmp_path / "h1_noderank0", [begun, *events, replace(finished, value={**finished.value, **values})]
    )
    texts = text_of(judge(planned(CASE), observed(CASE), tmp_path, str))
    assert max(map(len, texts)) < 5_000 and len(texts) < 200


def text_of(result: RoundResult) -> list[str]:
    """What people are shown of a result; `facts` are the event itself."""
    of_failure = [result.failure.headline, result.failure.remedy] if result.failure else []
    of_figures = [text for each in result.figures.values() for text in (each.unit, each.source, each.caveat)]
    return [*of_failure, *of_figures, *result.notes, result.rules.explanation(), result.rules.hooks_line()]


def test_a_changed_parameter_of_any_length_is_shown_in_a_line(tmp_path: Path) -> None:
    started = Event(EventName.INIT_START, {"config": {"data": LONG}, "changed": ["data"]})
    write_rank_log(tmp_path / "h1_noderank0", [started, *training_events()[1:]])
    result = judge(planned(CASE), observed(CASE), tmp_path, str)
    assert result.rules.stamp == "open" and max(map(len, text_of(result))) < 5_000


def test_of_many_stray_logs_the_first_are_named(tmp_path: Path) -> None:
    write_rank_log(tmp_path / "h1_noderank0", training_events())
    for rank in range(5, 905):
        (tmp_path / "h1_noderank0" / f"rank{rank}.out.log").touch()
    notes = judge(planned(CASE), observed(CASE), tmp_path, str).notes
    assert len(notes) < 60 and "880 more notes like these" in notes


# ---- telemetry

METER = record_line(SourceInfo(START_MS - 5000, "meter", Scope.MACHINE, 1.0))
SAMPLES = [record_line(Sample(START_MS + 100 * tenth, "meter", power_w=200.0)) for tenth in range(-10, 112)]
WRONG = {
    "NaN": '{"kind": "sample", "time_ms": 1, "source": "meter", "power_w": NaN}',
    "infinity": '{"kind": "sample", "time_ms": 1, "source": "meter", "power_w": Infinity}',
    "an overflow": '{"kind": "sample", "time_ms": 1, "source": "meter", "power_w": 1e999}',
    "no time": '{"kind": "sample", "time_ms": null, "source": "meter"}',
    "a time of 400 digits": f'{{"kind": "sample", "time_ms": {HUGE}, "source": "meter", "power_w": 1}}',
    "no interval": '{"kind": "source", "time_ms": 1, "source": "m", "scope": "machine", "interval_s": null}',
    "a list": '{"kind": "source", "time_ms": 1, "source": ["m"], "scope": "machine", "interval_s": 1}',
    "brackets": '{"kind": "sample", "time_ms": ' + "[" * 200_000,
    "no object": "5",
    "binary": "\0\0\0",
}


@pytest.mark.parametrize("name", WRONG)
def test_telemetry_never_changes_a_verdict(name: str, tmp_path: Path) -> None:
    result = concluded(tmp_path, telemetry="".join((METER, *SAMPLES, WRONG[name] + "\n")))
    assert (result.verdict, result.failure) == (Verdict.CONVERGED, None)
    assert result.figures["energy"].value == pytest.approx(2000.0)
    assert result.figures["energy"].caveat.startswith(
        "h1_noderank0: 1 of 124 lines of telemetry are no record"
    )
    (note,) = result.notes
    assert f"{TELEMETRY_FILE}:124: not a telemetry record" in note


def test_of_telemetry_that_is_wrong_in_more_than_a_hundredth_nothing_is_made(tmp_path: Path) -> None:
    wrong = "".join(line.replace('"meter"', '"meter", "volts": 12') for line in SAMPLES[:2])
    result = concluded(tmp_path, telemetry="".join((METER, wrong, *SAMPLES[2:])))
    assert result.verdict is Verdict.CONVERGED
    assert result.figures["energy"].value is None
    assert "2 of 123 lines of telemetry are no record" in result.figures["energy"].source


def test_telemetry_that_breaks_its_reader_costs_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("run_benchmarks.results.power.clock_doubt", broken)
    result = concluded(tmp_path, telemetry="".join((METER, *SAMPLES)))
    assert result.verdict is Verdict.CONVERGED
    assert result.figures["energy"].value is None
    assert "ZeroDivisionError: a fault" in result.notes[0]
    assert any("Traceback" in detail for detail in log_lines.details)


def test_power_below_0_is_none(tmp_path: Path) -> None:
    below = [line.replace("200.0", "-100.0") for line in SAMPLES]
    node = tmp_path / "n0"
    node.mkdir()
    (node / TELEMETRY_FILE).write_text("".join((METER, *below)))
    figures = telemetry_outcome([node], training_events(), {}).figures
    assert {figures[name].value for name in ("energy", "avg_power", "max_power")} == {None}
    meter = PowerMeter()
    meter.take(SourceInfo(1, "meter", Scope.MACHINE, 1.0))
    below_0, above = ticks_of([Sample(2, "meter", power_w=-100.0), Sample(3, "meter", power_w=100.0)])
    assert meter.take(below_0) is None
    assert meter.take(above) == Power(100.0, Scope.MACHINE)


# ---- size

LARGE = 2**28  # bytes; the adversary's had four times as many


@pytest.fixture
def large_log(tmp_path: Path) -> Path:
    """A log without a line's end but for its last lines; it takes no room on the disk."""
    log = tmp_path / "h1_noderank0" / "rank0.out.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(LARGE)
        file.seek(LARGE)
        file.write(b"\nValueError: bad shard\n")
    return log


def largest_memory(work: Callable[[], object]) -> int:
    """Bytes that Python held at once while it did `work`."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_of_a_log_of_any_size_the_end_is_the_evidence(large_log: Path) -> None:
    start_log = large_log.with_name("start_pytorch_task.log")
    large_log.rename(start_log)

    def read() -> None:
        nodes, outcome = [NodeLogs(0, "h1", start_log.parent)], Outcome({0: Ended(1, 1.0)}, False, {})
        failure = explain(nodes, outcome, open_framework("pytorch"), 60.0).failure
        assert failure is not None and failure.evidence.endswith("ValueError: bad shard")

    assert largest_memory(read) < 16 * END_BYTES


def test_the_end_of_a_file_is_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("first\nlast\n")
    assert last_lines_of(path) == ["first", "last"]
    path.write_text("x" * END_BYTES + "\nlast\n")
    assert last_lines_of(path) == ["last"]
    path.write_text("cut-off" + "x" * (END_BYTES - 5) + " word")
    assert last_lines_of(path) == [" word"], "the rest of a secret would not be known again"
    path.write_text("x" * (END_BYTES + 5))
    assert last_lines_of(path) == [""]


def test_a_log_of_one_line_does_not_fill_the_memory(large_log: Path) -> None:
    assert largest_memory(lambda: read_rank_logs([large_log.parent])) < 32 * LONGEST_LINE


def test_a_line_without_an_end_is_followed_at_no_cost() -> None:
    taken: list[str] = []
    lines = _Lines(taken.append)
    chunk = b"x" * 2**16

    async def feed() -> None:
        for _ in range(LARGE // len(chunk)):
            await lines.feed(chunk)
        await lines.feed(b" the end\nnext\n")

    assert largest_memory(lambda: asyncio.run(feed())) < 8 * LONGEST_LINE
    assert taken == ["next"]
    assert lines.read == LARGE + len(b" the end\nnext\n")


def test_a_line_that_breaks_what_takes_it_costs_that_line(log_lines: LogLines) -> None:
    def take(line: str) -> None:
        if line == "bad":
            raise ValueError("a fault")
        taken.append(line)

    taken: list[str] = []
    asyncio.run(_Lines(take).feed(b"one\nbad\nbad\ntwo\n"))
    assert taken == ["one", "two"]
    assert [line for line in log_lines.messages if "was not shown" in line] == [
        "a line of a node was not shown: ValueError: a fault"
    ]
