"""PerfLog lines, FINISHED values, telemetry and whole result folders: whatever they hold, results are made and read."""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from run_benchmarks.display.drawing import round_panel
from run_benchmarks.display.lines import training_line
from run_benchmarks.display.progress import Progress
from run_benchmarks.display.rows import UNICODE
from run_benchmarks.follow import _Lines
from run_benchmarks.pace import LEAST_S
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.results.rescore import rescore
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.round_telemetry import telemetry_outcome
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.results.tables import results_text
from run_benchmarks.stages.watch import Outcome
from run_benchmarks.training_state import TrainingState
from tests.fuzz.long_run import holds
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
)
from tests.run_benchmarks.written_run import SCHEMA1, write_run
from utils.errors import FlagPerfError
from utils.events import DEEPEST, EventName, format_line, parse_line
from utils.records import FailureClass, Verdict
from utils.stacks import STACKS_FILE, RankState, record_name
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

DRIVER = replace(make_case(["h1"]), parameters={"target_mlm_accuracy": 0.3})
OWN = with_own_script(DRIVER)
MEASURE = replace(DRIVER, parameters={"case_kind": "measure"})
LOGS = sorted(SCHEMA1.rglob("rank0.out.log"))
LINES = [line for log in LOGS for line in log.read_text().splitlines() if "[PerfLog]" in line]

ODD = [
    10**400,
    -(10**400),
    10**30,
    1e308,
    -1e308,
    5e-324,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    "\ud800",
    "\x1b[2J",
]
ODD_TEXTS = ["[" * 2000, "9" * 400, "\0", "\\ud800", "1e999", "NaN", "}", "\n"]
NUMBERS = st.integers() | st.floats() | st.sampled_from(ODD[:10])
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(ODD) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FACTS = (
    *FINISHED,
    "continued",
    "figures",
    "notes",
    "eval_time",
    "p_whole",
    "failed_checkpoints",
    "begun_anew",
)
CHANGES = st.dictionaries(st.sampled_from(FACTS), VALUES | NUMBERS, min_size=1, max_size=4)


@st.composite
def torn(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text of which a part is cut out, doubled, or has another in its place."""
    text = draw(texts)
    begin = draw(st.integers(0, len(text)))
    end = min(len(text), begin + draw(st.integers(0, 40)))
    others = st.sampled_from(["", text[begin:end] * 3, *ODD_TEXTS]) | st.text(max_size=5)
    return text[:begin] + draw(others) + text[end:]


def line_of(name: str, value: Any, time_ms: object = START_MS, rank: object = 0) -> str:
    """A PerfLog line as Python's own json writes it, NaN and all."""
    return f"[PerfLog] {json.dumps({'event': name, 'value': value, 'metadata': {'time_ms': time_ms, 'rank': rank}})}"


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def numbers_in(value: Any) -> list[float]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in inner for number in numbers_in(item)] + (
        [value] if isinstance(value, (int, float)) else []
    )


ANY_ODD = st.lists(st.sampled_from(ODD[:10]), min_size=1).map(
    lambda odd: dict(zip("abcdefghij", odd, strict=False))
)
OBJECTS = ANY_ODD | st.dictionaries(st.text(max_size=3), NUMBERS | VALUES, min_size=1, max_size=4)


@holds(
    line=torn(st.sampled_from(LINES))
    | OBJECTS.map(lambda value: line_of("X", value))
    | st.text().map("[PerfLog] ".__add__)
)
def test_a_line_is_an_event_that_any_file_can_hold_or_none(line: str) -> None:
    event = parse_line(line)
    if event is not None:
        assert json.dumps(dict(event.value), allow_nan=False, ensure_ascii=False).encode()
        assert depth(dict(event.value)) <= DEEPEST
        assert all(math.isfinite(float(number)) for number in numbers_in(dict(event.value)))
        assert abs(event.time_ms) <= 2**53 and parse_line(format_line(event)) == replace(
            event, value=event.value
        )


EVENTS = st.lists(
    st.tuples(st.sampled_from([*EventName, "OWN"]), CHANGES, NUMBERS | st.just(START_MS)),
    min_size=1,
    max_size=8,
)


@holds(events=EVENTS)
def test_whatever_rank_0_writes_a_round_that_goes_on_is_shown(events: list[tuple[str, Any, Any]]) -> None:
    state, nodes = TrainingState(), make_nodes(["h1"])
    progress = Progress(nodes, state, dict.fromkeys(nodes, "train"))
    for name, value, time_ms in events:
        event = parse_line(line_of(str(name), {**value, "loss": value.get("final_loss")}, time_ms))
        if event is not None:
            state.update(event)
            progress.event(event)
        assert training_line(state) and round_panel(progress, 80, 24, UNICODE)
        assert (state.pace.limit_s(None) or LEAST_S) >= LEAST_S


@holds(parts=st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", "Ü".encode()[:1], b"\r\n"])))
def test_a_stream_has_the_same_lines_however_it_is_cut(parts: list[bytes]) -> None:
    taken: list[str] = []
    lines = _Lines(taken.append)

    async def feed() -> None:
        for part in parts:
            await lines.feed(part)

    asyncio.run(feed())
    whole = b"".join(parts)
    assert taken == [line.decode("utf-8", "replace") for line in whole.split(b"\n")[:-1]]
    assert lines.read == len(whole)


def written(folder: Path, case: Any, lines: list[str], telemetry: str = "") -> RoundResult:
    """The result of a round whose rank 0 wrote these lines; it, and the run's summary, are there to be read."""
    node = folder / case.settings.name / "round1" / "h1_noderank0"
    node.mkdir(parents=True)
    (node / "rank0.out.log").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    (node / TELEMETRY_FILE).write_text(telemetry, encoding="utf-8", errors="replace")
    result = conclude(case, observed(case), node.parent)
    write_summary(folder, Run("run1", "run1-x", "2026-01-02", 0, (result,), {}))
    assert "could not be made" not in (folder / "summary.md").read_text(encoding="utf-8")
    assert load_run(folder, by_name_alone).results == (result,)
    assert results_text([result], 80)
    assert result.failure is None or result.failure.failure_class is not FailureClass.CONTROLLER_ERROR
    return result


def number(facts: Mapping[str, Any], name: str) -> float:
    value = facts[name]
    assert isinstance(value, (int, float)) and not isinstance(value, bool)
    return value


@holds(
    case=st.sampled_from([DRIVER, OWN, MEASURE]),
    changes=CHANGES,
    at=st.sampled_from([*EventName]),
    value=st.dictionaries(st.sampled_from(["config", "changed", "continued", *FACTS]), VALUES, max_size=3),
)
def test_whatever_finished_says_there_is_a_result_and_its_verdict_is_earned(
    case: Any, changes: dict[str, Any], at: EventName, value: dict[str, Any]
) -> None:
    facts = {**FINISHED, **changes}
    events = training_events()[:-1]
    lines = [*map(format_line, events), line_of(at.value, value), line_of("FINISHED", facts, END_MS + 10)]
    with tempfile.TemporaryDirectory() as folder:
        result = written(Path(folder), case, lines)
    if result.verdict is Verdict.CONVERGED and case is DRIVER:
        own = result.facts
        assert number(own, "final_mlm_accuracy") >= 0.3
        assert number(own, "global_steps") > 0 and number(own, "num_trained_samples") > 0
        assert 0 <= number(own, "time_to_target") <= number(own, "raw_train_time") * 1.01 + 7
    for name, figure in result.figures.items():
        assert figure.value is None or math.isfinite(figure.value), name


METER = SourceInfo(START_MS - 5000, "meter", Scope.MACHINE, 1.0)
RECORDS = [
    record_line(METER),
    *(record_line(Sample(START_MS + 1000 * s, "meter", power_w=2e2)) for s in range(-2, 13)),
]
FIELDS = (
    *(
        "kind",
        "time_ms",
        "source",
        "scope",
        "interval_s",
        "device",
        "devices",
        "readings",
        "error",
        "power_on",
    ),
    *("power_w", "energy_mj", "energy_range_mj", "volts"),
)
READINGS = ("power_w", "energy_mj", "energy_range_mj", "utilisation", "volts")


@st.composite
def telemetry_lines(draw: st.DrawFn) -> str:
    """A line of telemetry with other values, or a torn one."""
    line = draw(st.sampled_from(RECORDS))
    if draw(st.booleans()):
        return draw(torn(st.just(line.rstrip()))) + "\n"
    record = json.loads(line)
    columns = st.lists(NUMBERS | VALUES, max_size=3)
    if "readings" in record and draw(st.booleans()):
        record["readings"] |= draw(st.dictionaries(st.sampled_from(READINGS), columns, max_size=3))
    changes = draw(st.dictionaries(st.sampled_from(FIELDS), NUMBERS | VALUES | columns, max_size=3))
    return json.dumps({**record, **changes}) + "\n"


@holds(lines=st.lists(telemetry_lines(), max_size=12), whole=st.integers(0, 30))
def test_telemetry_never_changes_a_verdict_and_its_figures_are_figures(lines: list[str], whole: int) -> None:
    text = "".join((*RECORDS * whole, *lines))
    with tempfile.TemporaryDirectory() as folder:
        result = written(Path(folder), DRIVER, [*map(format_line, training_events())], text)
        node = next(Path(folder).rglob(TELEMETRY_FILE)).parent
        figures = telemetry_outcome([node], training_events(), {}).figures
    assert (result.verdict, result.failure) == (Verdict.CONVERGED, None)
    for name, figure in figures.items():
        assert figure.value is None or (math.isfinite(figure.value) and figure.value >= 0), name


STACK_LINES = (
    RankState(1, 7, "T", "do_signal_stop").line(),
    RankState(2, 8, "S", "futex_wait").line(),
    '  Thread 7 (idle): "MainThread"',
    "      all_reduce (/x/torch/distributed/distributed_c10d.py:3252)",
    '    File "/x/train.py", line 10 in next_batch',
    "  " + " " * 1300 + " (" * 650 + ":1" * 650 + "x",  # no frame, and a thousand ways to look for one
)


@holds(
    lines=st.lists(torn(st.sampled_from(STACK_LINES)) | st.sampled_from(STACK_LINES) | st.text(max_size=20)),
    record=torn(
        VALUES.map(lambda value: json.dumps({"pg_status": {"0": {"last_enqueued_collective": value}}}))
    ),
)
def test_whatever_ranks_write_of_a_hang_it_is_one(lines: list[str], record: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "h1_noderank0"
        folder.mkdir()
        (folder / STACKS_FILE).write_bytes("\n".join(lines).encode(errors="replace"))
        (folder / record_name(2)).write_bytes(record.encode(errors="replace"))
        seen = replace(observed(DRIVER), outcome=Outcome({}, False, {}, hung_s=301.0))
        failure = conclude(DRIVER, seen, Path(temporary)).failure
    assert failure is not None and failure.failure_class is FailureClass.COLLECTIVE_HANG
    assert len(failure.message) < 10_000


@holds(
    name=st.sampled_from(
        ["plan.json", "summary.json", "journal.jsonl", "result.json", "round.json", "rank0.out.log"]
    ),
    data=st.data(),
)
def test_whatever_is_torn_in_a_folder_it_is_read_and_scored_again(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        write_run(folder)
        path = sorted(folder.rglob(name))[0]
        text = data.draw(torn(st.just(path.read_text())))
        assume(text != path.read_text())
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            loaded = load_run(folder, by_name_alone)
            assert json.dumps(loaded.as_dict(), allow_nan=False)
            assert results_text(loaded.results, 80)
            assert [line for each in rescore(folder, by_name_alone) for line in each.lines()]
        except FlagPerfError as error:
            assert str(folder) in error.where  # nothing is left that says that this was a run
