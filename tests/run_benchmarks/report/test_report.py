"""The report of a run as text: what stands in it, of a whole run, a torn one, an old one, and a hostile one."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from markupsafe import escape

from run_benchmarks import verbs
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.report import report, samples
from run_benchmarks.report.repeats import repeats_in
from run_benchmarks.report.report import try_report
from run_benchmarks.report.rounds import round_view
from run_benchmarks.report.tables import inventory
from run_benchmarks.results.load import load_run
from tests.run_benchmarks.builders import START_MS, training_events, write_rank_log
from tests.run_benchmarks.report.long_run import SPIKE_W, Made, write_made_run
from tests.run_benchmarks.written_run import FIGURE, NAME, SCHEMA1, write_run
from utils.telemetry.lines import record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

Capture = pytest.CaptureFixture[str]
MADE = Made(("node0", "node1"), devices=2, seconds=300, steps=100, rounds=2)
HOSTILE = "<script>alert(1)</script>"


def _report(folder: Path, *options: str) -> str:
    assert verbs.main(["report", str(folder), *options]) == 0
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("made") / "run20261122000000"
    write_made_run(folder, MADE)
    return _report(folder)


def _charts(text: str) -> dict[str, dict[str, object]]:
    contents = map(json.loads, re.findall(r'<script type="application/json">(.*)</script>', text))
    return {content["title"]: content for content in contents}


def test_a_report_has_the_curves_and_every_device(text: str) -> None:
    charts = _charts(text)
    assert {*("Loss", "Throughput", "Learning rate", "Quality: mlm_accuracy")} < set(charts)
    power = charts["Power, accelerators"]
    lines = {(line["group"], line["label"]): line["values"] for line in power["lines"]}  # type: ignore[attr-defined]
    assert set(lines) == {(host, f"nvml {device}") for host in MADE.hosts for device in range(2)}
    assert max(value for value in lines["node0", "nvml 1"] if value is not None) == SPIKE_W
    assert charts["Quality: mlm_accuracy"]["levels"] == [["target", 0.71]]
    kinds = {phase[0] for phase in power["phases"]}  # type: ignore[attr-defined]
    assert kinds == {"init", "warm_up", "train", "evaluate", "checkpoint"}
    (saved,) = [phase[1:] for phase in power["phases"] if phase[0] == "checkpoint"]  # type: ignore[attr-defined]
    assert saved[1] - saved[0] == pytest.approx(5)


def test_a_report_says_what_was_seen_in_words_too(text: str) -> None:
    assert re.search(r"Greatest: [\d.]+ °C on node1, nvml 1\.", text)
    assert "Over the rounds of bert:pytorch:H100:8:8:1" in text
    assert "6 rounds are the fewest for an interval" in text
    assert "samples / <code>no_eval_time</code>" in text  # a definition
    assert "`" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_on_paper_a_later_round_has_only_what_the_first_of_its_case_has_not(
    text: str, tmp_path: Path
) -> None:
    _, first, second = text.partition("<h2>Preflight")[0].split('<section id="round-')
    again = "more are as in bert:pytorch:H100:8:8:1, round 1."
    assert again not in first and again in second and 'class="again"' not in first and "Macro" not in text
    results = write_run(tmp_path).results[:2]
    results = (*results, replace(results[1], case="other"))
    views = [round_view(each, None, None, 10, str) for each in results]
    for number, view in enumerate(views):
        view["parameters"] = {"seed": f"{number}", "size": "8"}
        view["provenance"] = [("tree", "abc"), ("clock", f"{number}")]
    none, later, other = repeats_in(views)
    assert (none.first, none.parameters) == ("", frozenset()) and not none.has_definitions
    assert later.parameters == {"size"} and later.provenance == {"tree"} and later.has_definitions
    assert other.parameters == frozenset() and other.provenance == {"tree"} and not other.has_definitions


def test_a_run_with_failures_is_reported_with_evidence_and_remedy(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run20260102030405")
    path = tmp_path / "run20260102030405" / NAME / "round1" / "result.json"
    short = {"verdict": "NOT_CONVERGED", "shortfall": "training came to its cap"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **short}))
    text = _report(tmp_path / "run20260102030405")
    assert "<p>training came to its cap</p>" in text and "see the evaluations in" in text
    failure = run.results[1].failure
    assert failure and failure.remedy
    assert text.count("What went wrong") == 2
    assert str(escape(failure.remedy)) in text and "start NTP" in text
    assert "Connection refused" in text


@pytest.mark.parametrize("name", sorted(path.name for path in SCHEMA1.iterdir()))
def test_runs_of_an_earlier_version_are_reported(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(next((SCHEMA1 / name).iterdir()), tmp_path / name)
    assert "<h1>" in _report(folder)


def test_what_is_torn_or_hostile_in_a_folder_stays_text(tmp_path: Path) -> None:
    folder = tmp_path / "run20260102030405"
    write_run(folder)
    node = folder / NAME / "round1" / "h1_noderank0"
    with (node / "rank0.out.log").open("a") as log:
        event = {
            "event": "EVALUATE",
            "value": {"metric": HOSTILE, HOSTILE: 0.5},
            "metadata": {"time_ms": 1_700_000_009_000},
        }
        log.write(f"\n[PerfLog] {json.dumps(event)}\n[PerfLog] {{\n")
    sample = {
        "kind": "sample",
        "time_ms": 1_700_000_001_000,
        "source": HOSTILE,
        "power_w": 5,
        "device": HOSTILE,
    }
    lines = [json.dumps({**sample, "time_ms": 1_700_000_001_000 + 1000 * second}) for second in range(3)]
    (node / "telemetry.jsonl").write_text(
        "\n".join([*lines, "{torn", "\0\0", json.dumps({**sample, "time_ms": 2**53})]) + "\n"
    )
    (folder / "summary.json").unlink()
    text = _report(folder)
    assert HOSTILE not in text
    assert "alert(1)" in text and "Power, of an unknown kind" in text
    assert "lines of telemetry are no record" in text


def test_figures_and_curves_as_csv(tmp_path: Path) -> None:
    folder = tmp_path / "run20261122000000"
    write_made_run(folder, MADE)
    _report(folder, "--csv", str(tmp_path / "csv"))
    figures = list(csv.DictReader((tmp_path / "csv" / "figures.csv").open(newline="")))
    p_train = [row for row in figures if row["figure"] == "p_train"]
    expected = [each.figures["p_train"].value for each in load_run(folder, by_name_alone).results]
    assert [float(row["value"]) for row in p_train] == expected
    points = list(csv.DictReader((tmp_path / "csv" / "curves_1_round1.csv").open(newline="")))
    assert len([row for row in points if row["event"] == "STEP_END"]) == MADE.steps
    assert [row for row in points if row["event"] == "EVALUATE" and row["mlm_accuracy"]]


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path, capsys: Capture) -> None:
    write_run(tmp_path / "run20260102030405")
    target = tmp_path / "run20260102030405" / "plan.json" / "report.html"
    assert verbs.main(["report", str(tmp_path / "run20260102030405"), "--output", str(target)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_numbers_that_nobody_can_have_measured_are_none(tmp_path: Path) -> None:
    """Sums and products of them overflowed, and there was no report."""
    folder = tmp_path / "run20260102030405"
    write_run(folder)
    events = training_events(figures={"rate": {**FIGURE, "value": 1.7e308}})
    for event in events:
        cast(dict[str, Any], event.value).update({"eval_time": 1e306} if event.name == "EVALUATE" else {})
    node = folder / NAME / "round1" / "h1_noderank0"
    write_rank_log(node, events)
    sample = {"kind": "sample", "time_ms": START_MS + 1000, "source": "s", "power_w": 1.7e308}
    (node / "telemetry.jsonl").write_text("".join(f"{json.dumps(sample)}\n" for _ in range(3)))
    absurd = {**FIGURE, "source": "made up", "better": "higher"}
    for path in folder.rglob("result.json"):
        content = json.loads(path.read_text())
        content["verdict"] = "CONVERGED"
        content["figures"] |= {name: {**absurd, "value": 1.7e308} for name in ("rate", "p_train")}
        ranks = [{"rates": [10**400, 1.7e308]}, {"rates": [1.0]}, {"rates": [-1.7e308, 2.0]}]
        content["facts"] |= {"world_size": 10**400, "target": 10**400, "operations": {"x": {"ranks": ranks}}}
        path.write_text(json.dumps(content))
    text = _report(folder)
    assert "1.7e+308 is no figure" in text and "evaluate" not in _charts(text)["Loss"]["phases"]
    for verb in (["show", str(folder)], ["compare", str(folder), f"{folder}/{NAME}/round1"]):
        assert verbs.main(verb) in (0, 2, 6)


def test_charts_begin_with_the_telemetry_and_each_line_is_as_fine_as_its_source(tmp_path: Path) -> None:
    """Idle is before the first event; processors are read once in 5 s, all of them together every second."""
    folder = tmp_path / "run20260102030405"
    write_run(folder)
    node = folder / NAME / "round1" / "h1_noderank0"
    first, *others = training_events()
    ranks_start_ms = START_MS - 3000
    write_rank_log(node, [replace(first, value={"ranks_start_ms": ranks_start_ms}), *others])
    sources = [
        SourceInfo(START_MS, "pwr", Scope.MACHINE, 1.0),
        SourceInfo(START_MS, "cpu", Scope.HOST, 1.0),
        SourceInfo(START_MS, "cores", Scope.HOST, 5.0),
    ]
    seconds = range(-10, 11)
    samples = [Sample(START_MS + 1000 * at, "pwr", power_w=100.0 + at) for at in seconds]
    samples += [Sample(START_MS + 1000 * at, "cpu", utilisation=(at + 10) / 20) for at in seconds]
    samples += [Sample(START_MS + 1000 * at, "cores", "0", utilisation=0.5) for at in seconds[::5]]
    samples.append(Sample(START_MS - 3_600_000, "pwr", power_w=1.0))  # before the round was: not believed
    (node / "telemetry.jsonl").write_text("".join(map(record_line, (*sources, *samples))))
    charts = _charts(_report(folder))
    power, utilisation = charts["Power, machine"], charts["Utilisation, host"]
    (idle,) = (phase for phase in cast(Any, power)["phases"] if phase[0] == "idle")
    assert idle == ["idle", 0.0, 7.0] and power["end"] == pytest.approx(20.0, abs=0.2)
    assert ["init", 8.0, 10.0] in cast(Any, power)["phases"]
    lines = {line["label"]: line["values"] for line in cast(Any, utilisation)["lines"]}
    assert len(set(lines["cpu"])) > 18, "none of its readings is lost"
    assert set(lines["cores 0"]) <= {50.0, None} and lines["cores 0"].count(None) < 4


def test_hosts_are_counted_once(tmp_path: Path) -> None:
    """30,000 hosts of a stranger's result took minutes."""
    compared: list[object] = []

    class Host(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return str.__eq__(self, other)

    hosts = (Host("a"), *(Host(number) for number in range(300)), Host("a"))
    round_view(replace(write_run(tmp_path).results[0], hosts=hosts), None, None, 1000, str)
    assert len(compared) < 1000


def test_the_energy_of_a_schedulers_job_stands_in_the_page_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "run20261122000000"
    write_made_run(folder, replace(MADE, seconds=20, rounds=1))
    (path,) = folder.rglob("result.json")
    job = {"scheduler": "slurm", "job": HOSTILE, "nodes": ["n1", "n2"], "energy_j": 121000.0}
    path.write_text(json.dumps({**json.loads(path.read_text()), "allocation": job}))
    page = _report(folder)
    says = (
        f"Energy of the job: the accounting of slurm has 121000 J for job {escape(HOSTILE)}, of 2 nodes from"
    )
    assert says in page and HOSTILE not in page


def test_what_the_user_has_is_not_written_over(tmp_path: Path, capsys: Capture) -> None:
    folder, mine = tmp_path / "run20260102030405", tmp_path / "mine"
    write_run(folder)
    mine.write_text("mine")
    (tmp_path / "link").symlink_to(mine)
    (tmp_path / "tables").mkdir()
    for option, name in (("--output", "mine"), ("--output", "link"), ("--csv", "mine"), ("--csv", "tables")):
        assert verbs.main(["report", str(folder), option, str(tmp_path / name)]) == 2
        assert "is there already" in capsys.readouterr().err
    assert verbs.main(["compare", str(folder), str(folder), "--output", str(tmp_path / "link")]) == 2
    (folder / "report.html").symlink_to(mine)  # a stranger's, as all of the folder
    for name in (".report.html.partial", ".new.html.partial", ".figures.csv.partial"):
        os.mkfifo(folder / name)
        (tmp_path / name).symlink_to(mine)
    options = ("--output", str(tmp_path / "new.html"), "--csv", str(tmp_path / "csv"))
    assert verbs.main(["report", str(folder), *options]) == 0
    assert (tmp_path / "new.html").read_text() == _report(folder)
    assert (tmp_path / "csv" / "figures.csv").is_file() and mine.read_text() == "mine"


def test_a_fault_of_ours_loses_nothing_but_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run20260102030405")
    monkeypatch.setattr(report, "report_body", lambda *_: 1 / 0)
    assert try_report(tmp_path / "run20260102030405", run, str) is None
    assert not list((tmp_path / "run20260102030405").glob("*report*"))


def test_several_processes_read_what_one_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_made_run(tmp_path / "run20261122000000", replace(MADE, seconds=20, rounds=1))
    folders = sorted(path.parent for path in tmp_path.rglob("telemetry.jsonl"))
    alone = samples.read_samples(folders)
    monkeypatch.setattr(samples, "PARALLEL_BYTES", 0)
    together = samples.read_samples(folders)
    assert [list(node.devices) for node in together] == [list(node.devices) for node in alone]
    for one, other in zip(alone, together, strict=True):
        for key, device in one.devices.items():
            assert other.devices[key].interval_s == device.interval_s
            columns = other.devices[key].columns
            assert (
                columns.keys() == device.columns.keys() >= {"power_w" if key[0] != "cpu" else "utilisation"}
            )
            assert all((columns[name] == device.columns[name]).all() for name in columns)


def test_power_that_nothing_draws_is_not_drawn(tmp_path: Path) -> None:
    gpu = SourceInfo(0, "gpu", Scope.ACCELERATOR, 1.0)
    read = [
        Sample(second * 1000, "gpu", "0", power_w=w) for second, w in enumerate((300.0, 65_535.0, 0.0, -1.0))
    ]
    (tmp_path / "telemetry.jsonl").write_text("".join(map(record_line, (gpu, *read))))
    [node] = samples.read_samples([tmp_path])
    assert [repr(float(watts)) for watts in node.devices["gpu", "0"].columns["power_w"]] == [
        "300.0",
        *["nan"] * 3,
    ]


def test_all_nodes_of_a_round_together_fill_the_memory_no_more_than_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_made_run(tmp_path / "run20261122000000", replace(MADE, seconds=20, rounds=1))
    folders = sorted(path.parent for path in tmp_path.rglob("telemetry.jsonl"))
    held = [_values_of(node) for node in samples.read_samples(folders)]
    monkeypatch.setattr(samples, "MOST_VALUES", max(held))
    [alone] = samples.read_samples(folders[:1])
    assert (_values_of(alone), alone.doubt) == (held[0], "")
    together = samples.read_samples(folders)
    share = max(held) // 2
    assert all(0 < _values_of(node) < 1.5 * share for node in together)
    assert all(f"has more than {share} values" in node.doubt for node in together)


def _values_of(node: samples.NodeSamples) -> int:
    return sum(len(column) for device in node.devices.values() for column in device.columns.values())


def test_hosts_that_differ_far_into_a_value_differ() -> None:
    hosts = [{"cpu": {"flags": "x" * 1000 + end}, "kernel": "6.1"} for end in ("a", "b", "b")]
    fields = {field.name: field for field in inventory(["h0", "h1", "h2", "h3"], [*hosts, None])}
    assert not fields["kernel"].differs
    assert [on for _, on in fields["cpu.flags"].values] == ["h0", "h1, h2"]
    assert fields["cpu.flags"].values[0][0] != fields["cpu.flags"].values[1][0]
