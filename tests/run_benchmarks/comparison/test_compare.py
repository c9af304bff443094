"""`run.py compare`: runs, cases, rounds and groups; what is refused; what is written; the gate."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from junitparser import Error, Failure, JUnitXml

from run_benchmarks.commands import run_command
from run_benchmarks.journal import Journal
from run_benchmarks.names import JOURNAL
from run_benchmarks.plan.as_dict import plain
from run_benchmarks.results.provenance import Harness, Provenance
from run_benchmarks.results.rules import OPEN, Rules
from run_benchmarks.verbs import main
from scripts import result_schemas
from tests.browser import PHONE, Opener, serious_faults
from tests.run_benchmarks.builders import make_case, with_own_script
from tests.run_benchmarks.comparison.compared import AGAIN, CASE, noisy, write_compared
from tests.run_benchmarks.written_run import SCHEMA1
from utils.figures import Figure
from utils.records import Verdict

Capture = pytest.CaptureFixture[str]
OF_SCHEMA = Draft202012Validator(result_schemas.schema_of("comparison"))


def figures(
    speed: float = 1.0, seed: int = 1, count: int = 5, power: float = 100.0
) -> dict[str, Sequence[float | None]]:
    return {
        "p_train": noisy(1000 * speed, count, seed=seed),
        "p_whole": noisy(900 * speed, count, seed=seed + 10),
        "time_to_target": noisy(60 / speed, count, seed=seed + 20),
        "avg_power": noisy(power, count, seed=seed + 30),
        "energy": noisy(60 * power / speed, count, seed=seed + 40),
        "mem": [10.0] * count,
        "MFU": [None] * count,
    }


@pytest.fixture(scope="module")
def log_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base` and `same` are alike, `half` is half as fast, `alone` has one round."""
    path = tmp_path_factory.mktemp("result")
    write_compared(path, "base", figures())
    write_compared(path, "same", figures(seed=100))
    write_compared(path, "half", figures(0.5, seed=200), plan={"parameters": {"target": 0.3, "threads": 1}})
    write_compared(path, "alone", figures(0.5, seed=300, count=1))
    return path


def compared(log_path: Path, *words: str) -> int:
    return main(["compare", "--log-path", str(log_path), *words])


def as_json(log_path: Path, capsys: Capture, *words: str) -> dict[str, Any]:
    compared(log_path, *words, "--format", "json")
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    OF_SCHEMA.validate(content)
    return content


def row_of(content: dict[str, Any], name: str) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in content["cases"][0]["rows"] if row["name"] == name)
    return row


def test_two_alike_show_no_difference_and_one_that_is_half_as_fast_is_slower(
    log_path: Path, capsys: Capture
) -> None:
    assert compared(log_path, "base", "same", "half") == 0
    out = capsys.readouterr().out
    first, second = (line for line in out.splitlines() if "against A: p_train" in line)
    assert (
        first.startswith("- B against A: p_train 0.99")
        and ": no difference shown (to show a difference" in first
    )
    assert "- C against A: p_train 0.49" in second and "]: slower (of these runs alone: " in second
    assert "configuration  parameters.threads  none" in out
    assert "software" in out and "not known" in out
    assert "Not measured on any side: MFU" in out
    energies = [line for line in out.splitlines() if line.startswith("energy_of_all_nodes")]
    assert [line.rpartition("  ")[2] for line in energies] == ["no difference shown", "worse"]


def test_the_json_has_each_verdict_and_how_many_rounds_would_do(log_path: Path, capsys: Capture) -> None:
    content = as_json(log_path, capsys, "base", "same", "half", "alone")
    assert content["schema"] == 1 and content["cases"][0]["verdict"] == "compared"
    against = row_of(content, "p_train")["against"]
    assert [each["verdict"] for each in against.values()] == [
        "no difference shown",
        "slower",
        "no difference shown",
    ]
    (seen,) = against["B"]["rounds_needed"]
    assert seen == {"noise": against["B"]["noise"], "is_seen": True, "count": 3}
    assert against["C"]["rounds_needed"] == [] and against["D"]["p_value"] is None
    assert row_of(content, "avg_power")["against"]["C"]["verdict"] == "no difference shown"
    alone = as_json(log_path, capsys, f"base/{CASE}/round2", "alone")
    needed = row_of(alone, "p_train")["against"]["B"]["rounds_needed"]
    assert needed == [
        {"noise": 0.01, "is_seen": False, "count": 3},
        {"noise": 0.05, "is_seen": False, "count": 29},
    ]


def test_with_one_round_a_side_no_difference_is_shown_and_it_is_said_how_many_would_do(
    log_path: Path, capsys: Capture
) -> None:
    assert compared(log_path, "base/" + CASE + "/round2", "alone") == 0
    (line,) = (
        line
        for line in capsys.readouterr().out.replace("\n  ", " ").splitlines()
        if "against A: p_train" in line
    )
    assert "no difference shown (too few rounds: 1 round on a side, 3 are the fewest" in line
    assert (
        "3 rounds a side with a noise of 1 % or 29 rounds a side with a noise of 5 % would be enough" in line
    )


TWIN = "twin:toy:pytorch:T1:2:1:5"


def of_two_vendors(log_path: Path) -> None:
    """A run in which the second vendor's chips are half as fast."""
    cases = []
    for case, vendor, speed in ((CASE, "acme", 1.0), (TWIN, "twin", 0.5)):
        folder = write_compared(log_path, "both", figures(speed, seed=round(100 * speed)), case=case)
        (planned,) = json.loads((folder / "plan.json").read_text())["cases"]
        cases.append({**planned, "settings": {**planned["settings"], "vendor": vendor}})
    (folder / "plan.json").write_text(json.dumps({"cases": cases, "run": {"runtime": "docker"}}))


@pytest.mark.parametrize(
    "selectors", [("both",), ("both/acme", "both/twin"), (f"both/{CASE}", f"both/{TWIN}")], ids=" ".join
)
def test_the_vendors_of_a_run_are_compared_with_each_other(
    tmp_path: Path, capsys: Capture, selectors: Sequence[str]
) -> None:
    of_two_vendors(tmp_path)
    content = as_json(tmp_path, capsys, *selectors)
    (case,) = content["cases"]
    assert [side["case"] for side in case["sides"]] == [CASE, TWIN]
    assert row_of(content, "p_train_per_chip")["against"]["B"]["value"] == pytest.approx(0.5, rel=0.02)


def test_a_vendor_that_a_run_does_not_have_is_refused(tmp_path: Path, capsys: Capture) -> None:
    of_two_vendors(tmp_path)
    assert compared(tmp_path, "both/acme", "both/twni") == 2
    assert "both has no case twni" in capsys.readouterr().err


def test_per_chip_per_node_and_per_watt(tmp_path: Path, capsys: Capture) -> None:
    facts = {"world_size": 4, "metric": "mlm_accuracy", "target": 0.3}
    write_compared(tmp_path, "small", figures())
    write_compared(
        tmp_path, "large", figures(1.8, seed=50, power=90), facts=facts, hosts=("h1", "h2", "h3", "h4")
    )
    content = as_json(tmp_path, capsys, "small", "large")
    directions = {row["name"]: row["against"]["B"]["direction"] for row in content["cases"][0]["rows"]}
    assert directions["p_train"] == "better" and directions["time_to_target"] == "better"
    assert directions["p_train_per_chip"] == directions["p_train_per_node"] == "worse"
    assert directions["chip_seconds_to_target"] == "worse"
    # 1.8 / (4 x 90) against 1 / (2 x 100)
    assert row_of(content, "p_train_per_watt")["against"]["B"]["value"] == pytest.approx(1.0, abs=0.02)
    assert content["cases"][0]["sides"][1]["chips"] == [4]


def test_rounds_of_several_runs_are_a_group(log_path: Path, capsys: Capture) -> None:
    content = as_json(
        log_path, capsys, f"base/{CASE}/round1+base/{CASE}/round2+same", f"{log_path / 'half'}/{CASE}"
    )
    assert [side["used"] for side in content["cases"][0]["sides"]] == [7, 5]
    row = row_of(content, "p_train")
    assert row["cells"]["A"]["runs"] == [0, 0, 1, 1, 1, 1, 1]
    assert "too few runs: 1 run on a side" in row["against"]["B"]["reason"]
    summary = row["cells"]["A"]["summary"]
    assert summary["count"] == 7 and summary["interval"][0] < summary["mean"] < summary["interval"][1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("base",), "there is nothing to compare it with"),
        (("base", "base"), "is named twice"),
        (("base", "bose"), "there is no run 'bose'"),
        (("base", "same/toy:pytorch:X1:2:1:4"), f"did you mean {CASE}?"),
        (("base", f"same/{CASE}/round9"), "has no such round"),
        (("base", f"same/{CASE}/third"), "third is no round"),
        (("base", "same", "--figure", "p_trian"), "did you mean p_train?"),
        (("base", "same", "--fail-if", "p_trian < 1"), "did you mean p_train?"),
        (("base", "same", "--fail-if", "p_train <"), "is no condition"),
    ],
)
def test_what_names_nothing_is_an_error_that_says_what_there_is(
    words: Sequence[str], message: str, log_path: Path, capsys: Capture
) -> None:
    assert compared(log_path, *words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "planted",
    [
        f"run20260102030406/{CASE}",
        "run20260102030405+run20260102030406",
        "main",
        f"main/{CASE}",
        "main+run20260102030405",
        f"latest/{CASE}",
    ],
)
def test_a_runs_name_goes_before_a_path_where_the_user_happens_to_be(
    planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Others may have put a run of theirs there."""
    for name in ("main", *(f"run2026010203040{number}" for number in range(5, 9))):
        write_compared(tmp_path / "result", name, figures())
    monkeypatch.chdir(tmp_path)
    write_compared(tmp_path, planted, figures(3.0))
    gate = ("--figure", "p_train", "--fail-if", "p_train > 1.5")
    assert compared(tmp_path / "result", "run20260102030407", planted, *gate) == 0
    assert compared(tmp_path / "result", "run20260102030407", f"./{planted}", *gate) == 5


def test_a_run_that_goes_on_says_so_and_where_it_is(tmp_path: Path, capsys: Capture) -> None:
    write_compared(tmp_path, "run20260102030405", figures(count=1))
    folder = tmp_path / "run20260102030406"
    folder.mkdir()
    journal = Journal(folder / JOURNAL)
    journal.write("run_started", started="2026-01-02T03:04:06+01:00")
    journal.write("stage", case=CASE, round=1, stage="train")
    assert compared(tmp_path, "run20260102030405", "latest") == 2
    where = f"since 2026-01-02T03:04:06+01:00, now at case {CASE}, round 1, stage train"
    error = capsys.readouterr().err
    assert f"run20260102030406 still goes on, {where}: no such round of it has ended" in error
    assert f"name a run that has ended: {run_command('list', '--log-path', str(tmp_path))}" in error
    journal.close()
    assert compared(tmp_path, "run20260102030405", "latest") == 2
    assert "run20260102030406 has no round: the run did not come to its end" in capsys.readouterr().err


OTHER: dict[str, dict[str, Any]] = {
    "target": {"facts": {"world_size": 2, "metric": "mlm_accuracy", "target": 0.4}},
    "metric": {"facts": {"world_size": 2, "metric": "accuracy", "target": 0.3}},
    "rules": {"rules": Rules(OPEN, {"layers": 2})},
    "kind": {"kind": "measure", "verdict": Verdict.MEASURED},
    "task": {"plan": {"settings": {"name": CASE, "model": "bert"}}},
    "data": {"provenance": Provenance(data={"h1": "beef"})},
}


@pytest.mark.parametrize("trait", OTHER)
def test_what_is_not_comparable_is_refused_unless_it_is_asked_for(
    trait: str, tmp_path: Path, capsys: Capture
) -> None:
    write_compared(tmp_path, "base", figures(), provenance=Provenance(data={"h1": "dead"}))
    write_compared(
        tmp_path, "other", figures(), **{"provenance": Provenance(data={"h1": "dead"}), **OTHER[trait]}
    )
    assert (
        compared(tmp_path, "base", "other", "--fail-if", "p_train < 0.5", "--junit", str(tmp_path / "j.xml"))
        == 6
    )
    out = capsys.readouterr().out
    assert f"NOT COMPARABLE: {trait} differs: A " in out and "B/A" not in out
    (test,) = next(iter(JUnitXml.fromfile(str(tmp_path / "j.xml"))))
    assert [type(each) for each in test.result] == [Error]
    assert compared(tmp_path, "base", "other", "--even-if-not-comparable") == 0
    out = capsys.readouterr().out
    assert f"compared all the same: {trait} differs: A " in out and "B/A" in out


def test_metric_and_target_of_a_round_that_reported_none_are_the_plans(
    tmp_path: Path, capsys: Capture
) -> None:
    write_compared(tmp_path, "base", figures())
    for name, target in (("same", 0.3), ("other", 0.4)):
        plan = {"parameters": {"target_mlm_accuracy": target}}
        write_compared(tmp_path, name, figures(), plan=plan, facts={}, verdict=Verdict.FAILED)
    assert compared(tmp_path, "base", "same") == 6
    out = capsys.readouterr().out
    assert "no round of B succeeded" in out and not {"metric", "target"} & set(out.split())
    assert compared(tmp_path, "base", "other") == 6
    assert "target differs: A 0.300000; B 0.400000" in capsys.readouterr().out
    assert compared(tmp_path, "base", "same", "other") == 6
    assert "target differs: A, B 0.300000; C 0.400000" in capsys.readouterr().out


def test_open_results_differ_by_what_makes_them_open(tmp_path: Path, capsys: Capture) -> None:
    for name, layers in (("base", 2), ("same", 2), ("other", 4)):
        write_compared(tmp_path, name, figures(count=3), rules=Rules(OPEN, {"layers": layers}))
    assert compared(tmp_path, "base", "same") == 0
    assert compared(tmp_path, "base", "other") == 6
    assert "rules differs: A open (layers = 2); B open (layers = 4)" in capsys.readouterr().out


def test_rounds_that_failed_or_were_continued_do_not_count_in_secret(tmp_path: Path, capsys: Capture) -> None:
    write_compared(tmp_path, "base", figures(), continued={"step": 5, "run": "earlier"})
    write_compared(tmp_path, "other", figures(), verdict=Verdict.NOT_CONVERGED)
    write_compared(tmp_path, "good", figures(seed=9))
    assert compared(tmp_path, "good", "other") == 6
    out = capsys.readouterr().out
    assert "no round of B succeeded" in out and "left out, for it did not succeed: other/" in out
    content = as_json(tmp_path, capsys, "good", "base")
    assert "of its last part only" in row_of(content, "p_train")["against"]["B"]["reason"]
    assert row_of(content, "time_to_target")["against"]["B"]["value"] == pytest.approx(1.0, abs=0.02)


def test_rounds_that_were_run_again_are_named_and_sides_that_differ_in_that(
    tmp_path: Path, capsys: Capture
) -> None:
    write_compared(tmp_path, "steady", figures())
    write_compared(tmp_path, "shaky", figures(seed=9), attempts=(AGAIN,))
    compared(tmp_path, "steady", "shaky")
    out = capsys.readouterr().out
    assert "an attempt before it does not count: shaky/" in out and "engine_failed on h2" in out
    assert "sides differ in how often rounds were run again, by the machines' fault: 0 of A, 5 of B" in out
    (case,) = as_json(tmp_path, capsys, "steady", "shaky")["cases"]
    assert [len(side["again"]) for side in case["sides"]] == [0, 5]
    write_compared(tmp_path, "likewise", figures(), attempts=(AGAIN,))
    compared(tmp_path, "shaky", "likewise")
    out = capsys.readouterr().out
    assert "likewise/" in out and "sides differ" not in out


@pytest.mark.parametrize("verdict", ["NOT_CONVERGED", "FAILED"])
def test_mlperfs_mean_counts_one_round_that_did_not_converge(
    verdict: str, tmp_path: Path, capsys: Capture
) -> None:
    times = [3795.0, 4683, 3807, 5594, 6473, 5576, 6481, 4683, 5580]
    folder = write_compared(tmp_path, "base", {"time_to_target": times})
    write_compared(tmp_path, "other", {"time_to_target": times})
    last = folder / CASE / "round10"
    last.mkdir()
    result = json.loads((folder / CASE / "round9" / "result.json").read_text())
    result["figures"]["time_to_target"]["value"] = None
    (last / "result.json").write_text(json.dumps({**result, "round": 10, "verdict": verdict}))
    sides = as_json(tmp_path, capsys, "base", "other")["cases"][0]["sides"]
    assert round(sides[0]["olympic"]["value"], 1) == 5359.6 and sides[0]["used"] == 9
    assert sides[1]["olympic"]["value"] == pytest.approx(5199.4, abs=0.1)


def test_what_differs_is_said_of_configuration_software_and_hosts(tmp_path: Path, capsys: Capture) -> None:
    here = Provenance(harness=Harness(commit="aa11", dirty=False), versions={"torch": "2.9.0", "same": "1"})
    there = Provenance(harness=Harness(commit="aa11", dirty=True), versions={"torch": "2.9.1", "same": "1"})
    write_compared(tmp_path, "base", figures(), provenance=here)
    write_compared(
        tmp_path,
        "other",
        figures(),
        provenance=there,
        plan={"image_build_args": {"A": "b"}},
        hosts=("h1", "h9"),
    )
    (case,) = as_json(tmp_path, capsys, "base", "other")["cases"]
    differences = {each["name"]: each["values"] for each in case["differences"]}
    assert differences["versions.torch"] == {"A": "2.9.0", "B": "2.9.1"}
    assert differences["harness.dirty"] == {"A": "False", "B": "True"}
    assert differences["image_build_args.A"] == {"A": "none", "B": "b"}
    assert "h9" in differences["hosts"]["B"] and "versions.same" not in differences


POWER = ("energy", "avg_power")


@pytest.mark.parametrize(
    ("of_base", "of_other", "reason"),
    [
        (
            {"scope": "", "source": "pwr (machine): hardware energy counter"},  # as earlier versions wrote it
            {"scope": "accelerator"},
            "the parts of a machine that were measured differ: machine / accelerator",
        ),
        ({}, {"scope": ""}, "which part of a machine it is of is not known"),
        ({}, {"coverage": 0.55, "caveat": "marked"}, "only 55 % of the training was sampled"),
        ({}, {"coverage": None}, "how much of the training was sampled is not known"),
    ],
)
def test_power_of_another_part_of_a_machine_or_of_the_training_is_not_compared(
    of_base: dict[str, Any], of_other: dict[str, Any], reason: str, tmp_path: Path, capsys: Capture
) -> None:
    """A meter of all of the machine on one side, the accelerators' own on the other: that is no saving."""
    write_compared(tmp_path, "base", figures(power=1000), other=dict.fromkeys(POWER, of_base))
    write_compared(tmp_path, "other", figures(power=400, seed=50), other=dict.fromkeys(POWER, of_other))
    content = as_json(tmp_path, capsys, "base", "other", "--fail-if", "worse(energy)")
    for name in (*POWER, "energy_of_all_nodes", "p_train_per_watt"):
        ratio = row_of(content, name)["against"]["B"]
        assert ratio["value"] is None and reason in ratio["reason"]
    assert row_of(content, "p_train")["against"]["B"]["value"]
    assert reason in content["gates"][0]["failures"][0]
    assert compared(tmp_path, "base", "other") == 0
    assert "Throughput against energy" not in capsys.readouterr().out


def test_rounds_that_failed_leave_no_faster_side_and_fail_the_gate(tmp_path: Path, capsys: Capture) -> None:
    write_compared(tmp_path, "base", figures(count=6))
    write_compared(tmp_path, "half_failed", figures(1.2, seed=50, count=6), failed=3)
    write_compared(tmp_path, "one_failed", figures(1.2, seed=60, count=6), failed=1)
    file = tmp_path / "junit.xml"
    gate = ("--fail-if", "slower(p_train)", "--junit", str(file))
    assert compared(tmp_path, "base", "half_failed", *gate) == 5
    seen = "3 of 6 rounds of B did not succeed, all 6 of A succeeded"
    assert f"B: fail if more of its rounds did not succeed: FAILED: {seen}" in capsys.readouterr().out
    tests = list(next(iter(JUnitXml.fromfile(str(file)))))
    assert [[type(each) for each in test.result] for test in tests] == [[], [Failure]]
    content = as_json(tmp_path, capsys, "base", "half_failed", "one_failed")
    faster = "C against A: time_to_target 0\\.8.*: faster \\(1 of 6 rounds of C did not succeed; of these"
    assert compared(tmp_path, "base", "half_failed", "one_failed", "--figure", "time_to_target") == 0
    assert re.search(faster, " ".join(capsys.readouterr().out.split()))
    for name in ("time_to_target", "energy", "energy_of_all_nodes"):
        many, one = (row_of(content, name)["against"][letter] for letter in "BC")
        assert many["value"] is None and "3 of 6 rounds of B did not succeed" in many["reason"]
        assert one["direction"] == "better"
        assert row_of(content, name)["cells"]["C"]["caveats"] == ["1 of 6 rounds of C did not succeed"]
    assert row_of(content, "p_train")["against"]["B"]["direction"] == "better"
    journal = Journal(
        tmp_path / "one_failed" / JOURNAL
    )  # of a run whose controller was killed in its eighth round
    for number in (7, 8):
        journal.write("stage", case=CASE, round=number, stage="train")
    side = as_json(tmp_path, capsys, "base", "one_failed")["cases"][0]["sides"][1]
    assert side["left_out"][1:] == [f"one_failed/{CASE}/round7: no result"], "at the eighth it still is"
    journal.close()
    content = as_json(tmp_path, capsys, "base", "one_failed", "--figure", "time_to_target")
    assert "3 of 8 rounds of B did not succeed" in row_of(content, "time_to_target")["against"]["B"]["reason"]
    assert content["cases"][0]["sides"][1]["olympic"]["value"] is None
    # as many on both sides are no loss
    assert compared(tmp_path, "half_failed", "one_failed", "--fail-if", "slower(p_train)") == 0


def test_rounds_that_were_planned_and_are_not_there_make_no_whole_side(
    tmp_path: Path, capsys: Capture
) -> None:
    """As of a run that was cut off; of one that goes on; and of one that another run went on with."""
    planned = {"settings": {**plain(make_case(name=CASE))["settings"], "repeat": 5}}
    write_compared(tmp_path, "base", figures(), plan=planned)
    write_compared(tmp_path, "cut_off", figures(seed=50, count=3), plan=planned)
    gate = ("--fail-if", "slower(p_train)")
    assert compared(tmp_path, "base", "cut_off", *gate) == 5
    out = capsys.readouterr().out
    seen = "2 of 5 rounds of B were planned and are not there, all 5 of A succeeded"
    assert f"B: fail if more of its rounds did not succeed: FAILED: {seen}" in out
    assert f"B  {CASE}  3 of 5  1" in out and "planned, and not there: 2 rounds of B" in out
    content = as_json(tmp_path, capsys, "base", "cut_off")
    assert row_of(content, "energy")["cells"]["B"]["caveats"] == [seen.partition(",")[0]]
    assert not row_of(content, "p_train")["cells"]["B"]["caveats"]
    # what is named by itself is whole, and the base may lack what it likes
    assert (
        compared(tmp_path, "base", "+".join(f"cut_off/{CASE}/round{each}" for each in (1, 2, 3)), *gate) == 0
    )
    assert compared(tmp_path, "cut_off", "base", *gate) == 0
    assert "planned, and not there: 2 rounds of A" in capsys.readouterr().out
    plan = json.loads((tmp_path / "cut_off" / "plan.json").read_text())
    for uid, run in (("u1", "cut_off"), ("u2", "went_on")):
        (tmp_path / run).mkdir(exist_ok=True)
        (tmp_path / run / "summary.json").write_text(json.dumps({"uid": uid}))
    (tmp_path / "went_on" / "plan.json").write_text(
        json.dumps({**plan, "continue_from": "u1", "done": {CASE: [1, 2, 3]}})
    )
    for number in (4, 5):
        shutil.copytree(
            tmp_path / "base" / CASE / f"round{number}", tmp_path / "went_on" / CASE / f"round{number}"
        )
    side = as_json(tmp_path, capsys, "base", "cut_off+went_on")["cases"][0]["sides"][1]
    assert (side["used"], side["not_run"]) == (5, 0)


def test_a_case_that_got_lost_fails_the_gate_and_a_new_one_does_not(tmp_path: Path, capsys: Capture) -> None:
    for run in ("base", "twin"):
        write_compared(tmp_path, run, figures(seed=len(run)))
    for run in ("base", "twin"):
        write_compared(tmp_path, run, figures(), case="other:pytorch:X1:2:1:5")
    write_compared(tmp_path, "small", figures(seed=50))
    gate = ("--fail-if", "p_train < 0.5")
    assert compared(tmp_path, "base", "twin", "small", *gate) == 5
    lost = "other:pytorch:X1:2:1:5, C: fail if it is not on both sides: FAILED"
    assert lost in capsys.readouterr().out
    assert compared(tmp_path, "small", "twin", *gate) == 0
    assert "other:pytorch:X1:2:1:5 of B is not in A" in capsys.readouterr().out
    assert compared(tmp_path, "base", "small") == 0, "without a gate it is said, and no more"


def test_which_way_is_better_is_the_registrys_and_the_metrics_and_not_the_files(
    tmp_path: Path, capsys: Capture
) -> None:
    facts = {"world_size": 2, "metric": "wer", "target": 0.058}
    parameters = {"target_wer": 0.058, "metric_better": "lower"}
    plan = {**plain(with_own_script(make_case(name=CASE))), "parameters": parameters}
    for name, quality, speed in (("base", 0.058, 1.0), ("other", 0.040, 0.5)):
        values = {"acc": noisy(quality, seed=len(name)), **figures(speed, seed=len(name))}
        forged = {"acc": {"unit": "wer"}, "p_train": {"better": "lower", "unit": "s"}}
        write_compared(tmp_path, name, values, facts=facts, plan=plan, other=forged)
    content = as_json(tmp_path, capsys, "base", "other", "--fail-if", "slower(p_train)")
    assert row_of(content, "acc")["against"]["B"]["direction"] == "better"
    rate = row_of(content, "p_train")
    assert (rate["unit"], rate["better"], rate["against"]["B"]["direction"]) == (
        "samples/s",
        "higher",
        "worse",
    )
    own = {"rate": Figure(None, "GB/s", "all", "", "higher", "bytes over time")}
    measured = {"kind": "measure", "verdict": Verdict.MEASURED, "facts": {"world_size": 2}, "own": own}
    for name, better in (("up", "higher"), ("down", "lower")):
        write_compared(tmp_path, name, {"rate": noisy(3)}, other={"rate": {"better": better}}, **measured)
    ratio = row_of(as_json(tmp_path, capsys, "up", "down"), "rate")["against"]["B"]
    assert ratio["reason"] == "the ways that are better differ: higher / lower"
    windows = {
        "short": "1 window of 0.001 s",
        "long": "25 windows of 0.203 s",
        "alike": "25 windows of 0.201 s",
    }
    for name, window in windows.items():
        write_compared(tmp_path, name, {"rate": noisy(3)}, other={"rate": {"window": window}}, **measured)
    cells = row_of(as_json(tmp_path, capsys, "long", "short"), "rate")["cells"]
    assert cells["B"]["caveats"] == ["measured by B over: 1 window of 0.001 s"] and cells["A"]["caveats"]
    assert not row_of(as_json(tmp_path, capsys, "long", "alike"), "rate")["cells"]["B"]["caveats"]


def test_a_ratio_near_1_has_the_digits_that_show_on_which_side_it_is(tmp_path: Path, capsys: Capture) -> None:
    write_compared(tmp_path, "base", {"p_train": noisy(1000, 8, 1e-5)})
    write_compared(tmp_path, "other", {"p_train": noisy(999.96, 8, 1e-5, seed=2)})
    assert compared(tmp_path, "base", "other", "--fail-if", "slower(p_train)") == 5
    out = capsys.readouterr().out
    assert re.search(r"p_train 0\.9999\d+ times \[0\.9999\d+ \.\. 0\.9999\d+\]: slower", out)
    assert "the ratio is 0.9999" in out and "1000 .. 1000" not in out


def test_rounds_that_repeat_each_other_and_a_run_that_is_there_twice_prove_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    """As three rounds with one seed have one quality; memory is the same whatever the seed."""
    seeds = Provenance(seeds={"seed": 1})
    for name, quality, memory in (("base", 0.9213, 10.0), ("other", 0.9211, 12.0)):
        write_compared(tmp_path, name, {"acc": [quality] * 5, "mem": [memory] * 5}, provenance=seeds)
    assert compared(tmp_path, "base", "other") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "A, B: all rounds of each are of one run" in out
        and "all rounds of each began with the same seeds" in out
    )
    content = as_json(tmp_path, capsys, "base", "other", "--figure", "acc", "--figure", "mem")
    quality, memory = (row_of(content, name)["against"]["B"] for name in ("acc", "mem"))
    assert (quality["direction"], memory["direction"]) == ("", "worse") and "one seed" in quality["reason"]
    for name in ("base", "copy"):
        folder = write_compared(tmp_path, name, figures())
        (folder / "summary.json").write_text(
            json.dumps({"run": "base", "uid": "base-abcdef", "exit_code": 0})
        )
    assert compared(tmp_path, "base+copy", "other") == 2
    assert "is named twice" in capsys.readouterr().err


def test_the_gate_has_an_exit_code_and_junit_xml(log_path: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "junit.xml"
    gates = (
        "--fail-if",
        "p_train < 0.95",
        "--fail-if",
        "slower(p_train) and energy > 105%",
        "--fail-if",
        "mem > 1",
    )
    assert compared(log_path, "base", "same", "half", *gates, "--junit", str(file)) == 5
    out = capsys.readouterr().out
    assert "C: fail if p_train < 0.95: FAILED: p_train < 0.95: the ratio is 0.49" in out
    tests = list(next(iter(JUnitXml.fromfile(str(file)))))
    failed = [test.name[:2] for test in tests if [type(each) for each in test.result] == [Failure]]
    assert len(tests) == 6 and failed == ["C ", "C "]
    assert compared(log_path, "base", "same", *gates) == 0


def test_a_figure_that_is_not_measured_or_cannot_be_judged_fails_the_gate(
    log_path: Path, capsys: Capture
) -> None:
    assert compared(log_path, "base", "same", "--fail-if", "MFU < 0.5") == 5
    assert "FAILED: MFU < 0.5: no side has measured it" in capsys.readouterr().out
    assert compared(log_path, "base", "alone", "--fail-if", "slower(p_train)") == 5
    assert "slower(p_train): too few rounds" in capsys.readouterr().out
    assert compared(log_path, "base", "alone", "--fail-if", "p_train < 0.1") == 0
    assert compared(log_path, "base", "same", "--fail-if", "tokens_per_second < 0.1") == 5
    assert "the case has no tokens_per_second" in capsys.readouterr().out


def test_a_cases_own_figures_are_compared_where_their_definitions_are_one(
    tmp_path: Path, capsys: Capture
) -> None:
    measured = {"kind": "measure", "verdict": Verdict.MEASURED, "facts": {"world_size": 2}}

    def own(definition: str) -> dict[str, Figure]:
        rate = Figure(None, "TFLOP/s", "all", "", "higher", definition)
        return {"rate": rate, "other": Figure(None, "GB/s", "all", "", "higher", "bytes over time")}

    values = {"rate": noisy(70), "other": noisy(3)}
    write_compared(tmp_path, "base", values, own=own("of 512 x 512"), **measured)
    write_compared(tmp_path, "large", values, own=own("of 4096 x 4096"), **measured)
    content = as_json(tmp_path, capsys, "base", "large")
    assert "definitions differ" in row_of(content, "rate")["against"]["B"]["reason"]
    assert row_of(content, "other")["against"]["B"]["value"] == 1 and row_of(content, "rate")["is_asked"]


def test_files_are_written_by_their_names_and_never_over_what_is_there(
    log_path: Path, tmp_path: Path, capsys: Capture
) -> None:
    for name, text in (
        ("c.md", "## toy:pytorch"),
        ("c.json", '"schema": 1'),
        ("c.html", "<!DOCTYPE html>"),
        ("c", "= toy"),
    ):
        file = tmp_path / name
        assert compared(log_path, "base", "half", "--output", str(file)) == 0
        assert text in file.read_text()
        file.write_text("mine")
        assert compared(log_path, "base", "half", "--output", str(file)) == 2
        assert "is there already" in capsys.readouterr().err
        assert file.read_text() == "mine"
    gate = ("--fail-if", "slower(p_train)", "--junit", str(file))
    assert compared(log_path, "base", "same", "--output", str(tmp_path / "d"), *gate) == 2
    assert not (tmp_path / "d").exists(), "all of it or nothing"


@pytest.mark.parametrize(
    ("words", "right"), [(["c.csv"], ".json"), (["c.html", "--format", "json"], "c.json")]
)
def test_a_file_whose_name_says_another_form_is_refused(
    words: list[str], right: str, log_path: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert compared(log_path, "base", "half", "--output", str(tmp_path / words[0]), *words[1:]) == 2
    assert right in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_a_strangers_folder_is_text_in_every_form(tmp_path: Path, capsys: Capture) -> None:
    hostile = "<img src=x onerror=alert(1)> | *a* \x1b[31m"
    own = {"rate": Figure(None, hostile[:40], "all", "", "higher", hostile)}
    for name in ("base", "other"):
        values = {"rate": noisy(1e99), "p_train": [1e300, -1.0, 0.0, 1e-300, 5.0]}
        case = {"settings": {"name": CASE, "model": hostile}, "parameters": {hostile: name}, "chip": hostile}
        write_compared(tmp_path, name, values, own=own, plan=case, hosts=(hostile,), notes=(hostile,))
    for form in ("text", "markdown", "html", "json"):
        assert compared(tmp_path, "base", "other", "--format", form) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and (form != "html" or "<img" not in out)
    assert "a ratio needs values above 0" in out


def test_runs_of_earlier_versions_are_compared_and_what_they_do_not_say_is_named(
    tmp_path: Path, capsys: Capture
) -> None:
    (run,) = (SCHEMA1 / "converged").iterdir()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "twin").symlink_to(run)
    assert compared(run.parent, str(run), str(run)) == 2
    assert "is named twice" in capsys.readouterr().err
    write_compared(tmp_path, "new", figures())
    assert compared(tmp_path, str(run), "new") == 6
    out = capsys.readouterr().out
    assert "task differs: A digits; B toy" in out and "NOT COMPARABLE" in out


def test_the_page_opens_in_a_browser_and_draws_its_pictures(
    log_path: Path, tmp_path: Path, open_page: Opener
) -> None:
    """That it has no error and asks nobody for anything is seen by `open_page`."""
    file = tmp_path / "c.html"
    assert compared(log_path, "base", "half", "--output", str(file)) == 0
    page = open_page(file, color_scheme="dark", viewport={"width": PHONE, "height": 800})
    assert page.locator("h1").inner_text() == "Comparison with base"
    assert page.locator(".bad").first.inner_text().startswith("B against A: p_train 0.49")
    page.locator(".chart").first.scroll_into_view_if_needed()
    page.locator(".chart canvas").first.wait_for()
    assert page.locator("td svg circle").count() > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    points = [
        {"name": "A", "left": 1, "top": 1},
        {"name": "B", "left": 9, "top": 5},
        {"name": "C", "left": 90, "top": 1},
    ]
    names = page.evaluate("(points) => together(points, 14).map((each) => each.names)", points)
    assert names == [["A", "B"], ["C"]], "what lies on each other has one text"
    assert serious_faults(page) == []
