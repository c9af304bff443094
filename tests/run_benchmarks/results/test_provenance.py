"""Where a result comes from, made of the raw files of a round: whole, partly missing, torn, a stranger's."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.judge import judge_logs
from run_benchmarks.results.planned import planned
from run_benchmarks.results.provenance import LARGEST_INVENTORY, MOST_VERSIONS, Harness, Origin, Provenance
from tests.run_benchmarks.builders import make_case, observed, training_events, write_rank_log
from utils.events import Event, EventName
from utils.inventory import INVENTORY_FILE, HostInventory, Inventory, MonitorCost, Software

COST = MonitorCost(0.5, 50.0, 0.01, {"cpu": {"sampled": 50, "failed": 0, "late": 0, "missed": 0}})
INVENTORY = Inventory(
    HostInventory(kernel="6.1.0", cpu={"Model name": "EPYC"}, accelerators=({"name": "X1", "ecc": True},)),
    Software(python="3.11.7", packages={"torch": "2.9.0"}),
    COST,
)
ORIGIN = Origin(harness=Harness(commit="c0ffee", dirty=False), data={"h1": "d1"})
CONFIG = {"seed": 42, "dataset_seed": 7, "target": 0.3, "seed_file": "x", "seed_step": 1}
STARTED = {"config": CONFIG, "changed": [], "versions": {"torch": "2.9.0", "nccl": None}}


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """A round of two nodes that has all."""
    made = [tmp_path / "h1_noderank0", tmp_path / "h2_noderank1"]
    events = [Event(EventName.INIT_START, STARTED, 1), *training_events()[1:]]
    write_rank_log(made[0], events)
    write_rank_log(made[1], [], rank=1)
    for folder in made:
        (folder / INVENTORY_FILE).write_text(json.dumps(asdict(INVENTORY)))
    return made


def judged(folders: list[Path], origin: Origin | None = ORIGIN) -> Provenance | None:
    case = make_case()
    result = judge_logs(planned(case), folders, replace(observed(case), origin=origin))
    assert result.verdict.is_success, "whatever is in an inventory, no verdict changes by it"
    return result.provenance


def present(provenance: Provenance | None) -> Provenance:
    assert provenance
    return provenance


def test_it_is_made_of_what_the_controller_and_the_nodes_wrote(folders: list[Path]) -> None:
    made = present(judged(folders))
    assert (made.harness, made.data) == (ORIGIN.harness, ORIGIN.data)
    assert made.hosts == (INVENTORY.host, INVENTORY.host) and made.monitors == (COST, COST)
    (software,) = made.software
    assert (software.nodes, software.packages) == ((0, 1), {"torch": "2.9.0"})
    assert made.versions == {"torch": "2.9.0", "nccl": None}
    assert made.configuration == CONFIG and made.seeds == {"seed": 42, "dataset_seed": 7}
    assert made.missing == {}


def test_nodes_of_other_software_stand_apart(folders: list[Path]) -> None:
    other = replace(INVENTORY, software=replace(INVENTORY.software, packages={"torch": "2.9.1"}))
    (folders[1] / INVENTORY_FILE).write_text(json.dumps(asdict(other)))
    software = present(judged(folders)).software
    assert [(each.nodes, each.packages["torch"]) for each in software] == [((0,), "2.9.0"), ((1,), "2.9.1")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is not in its folder"),
        ('{"host": {', "is not JSON, or only a part"),
        ("[]", "holds no JSON object"),
        ('{"host": {"cpu": 5}, "software": {}}', "host.cpu"),
        (json.dumps({"host": {"kernel": "x" * 9_000}, "software": {}}), "at most 8000 characters"),
        ('{"host": {}, "software": {}, "monitor": {"cpu_s": NaN}}', "monitor.cpu_s"),
        (" " * LARGEST_INVENTORY + "{}", "is larger than"),
        ("[" * 100_000, "is not JSON"),
    ],
    ids=lambda text: str(text)[:20].strip(),
)
def test_an_inventory_that_cannot_be_read_is_missing_for_a_reason(
    content: str | None, reason: str, folders: list[Path]
) -> None:
    path = folders[1] / INVENTORY_FILE
    path.unlink() if content is None else path.write_text(content)
    made = present(judged(folders))
    assert made.hosts == (INVENTORY.host, None) and made.monitors == (COST, None)
    assert made.software[0].nodes == (0,)
    assert set(made.missing) == {"h2"} and reason in made.missing["h2"] and len(made.missing["h2"]) < 500


def test_a_monitor_that_was_killed_has_no_cost(folders: list[Path]) -> None:
    (folders[0] / INVENTORY_FILE).write_text(json.dumps(asdict(replace(INVENTORY, monitor=None))))
    made = present(judged(folders))
    assert made.monitors == (None, COST) and made.hosts[0] == INVENTORY.host


@pytest.mark.parametrize("began", [{}, {"config": 5, "versions": [1]}, {"config": None}])
def test_a_case_that_reports_less_has_the_plans_parameters(
    began: dict[str, Any], folders: list[Path]
) -> None:
    write_rank_log(folders[0], [Event(EventName.INIT_START, began, 1), *training_events()[1:]])
    made = present(judged(folders))
    assert made.configuration == make_case().parameters and made.versions == made.seeds == {}


def test_of_versions_that_a_rank_reports_the_first_are_taken(folders: list[Path]) -> None:
    began = {"versions": dict.fromkeys(map(str, range(1000)), "1")}
    write_rank_log(folders[0], [Event(EventName.INIT_START, began, 1), *training_events()[1:]])
    assert len(present(judged(folders)).versions) == MOST_VERSIONS


def test_a_round_of_before_says_nothing_of_it(folders: list[Path]) -> None:
    for folder in folders:
        (folder / INVENTORY_FILE).unlink()
    assert judged(folders, origin=None) is None
