"""Of what is the same in every round one is held: counted by identity."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from run_benchmarks import runner
from run_benchmarks.display.base import Display
from run_benchmarks.plan.secrets import Secrets, by_name_alone
from run_benchmarks.reading import parsed
from run_benchmarks.results.load import load_run
from run_benchmarks.results.provenance import Provenance
from run_benchmarks.results.round_result import RoundResult, write_json
from run_benchmarks.results.shared import Shared
from run_benchmarks.session import Session
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.written_run import write_run
from utils.inventory import HostInventory

CPU = {"Model name": "EPYC", "Flags": "fpu vme"}


def inventory(mhz: str = "1500") -> HostInventory:
    """As read from a file: each has parts of its own."""
    content = asdict(HostInventory(cpu=CPU, settings={"scaling MHz": mhz}, accelerators=({"ecc": True},)))
    return parsed(HostInventory, content, "inventory.json")


def of_nodes(*hosts: HostInventory) -> Provenance:
    return Provenance(hosts=hosts)


def test_equal_inventories_are_one_and_of_others_the_parts_that_are_equal() -> None:
    shared = Shared()
    first, second, third = (shared.one(inventory(mhz)) for mhz in ("1500", "1500", "1600"))
    assert first == inventory() and first is second
    assert third.settings == {"scaling MHz": "1600"} and third is not first
    assert third.cpu is first.cpu and third.accelerators is first.accelerators


def test_what_is_equal_and_not_the_same_stays_apart() -> None:
    values = [True, 1, 1.0, 0.0, -0.0, "1", (1,), [1], {"a": 1}, {"a": 1.0}, {"a": True}, None]
    shared = Shared()
    assert [json.dumps(shared.one([value])) for value in values] == [json.dumps([value]) for value in values]
    assert [type(shared.one(value)) for value in values] == [type(value) for value in values]


def test_a_run_that_is_read_holds_what_its_rounds_have_in_common_once(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for path in (tmp_path / "run").glob("*/*/result.json"):
        result = parsed(RoundResult, json.loads(path.read_text()), str(path))
        write_json(path, replace(result, provenance=of_nodes(inventory(), inventory())).as_dict())
    hosts = [
        host
        for each in load_run(tmp_path / "run", by_name_alone).results
        for host in cast(Any, each.provenance).hosts
    ]
    assert len(hosts) == 2 * len(run.results) > 2
    assert len(set(map(id, hosts))) == 1


def test_a_run_that_goes_on_holds_it_once_and_so_does_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = write_run(tmp_path / "run").results[0]

    async def run_round(*_: object) -> RoundResult:
        return replace(result, provenance=of_nodes(inventory()))

    monkeypatch.setattr(runner, "_run_round", run_round)
    plan = SimpleNamespace(cases=[make_case()], done={}, rounds=lambda _: (1, 2, 3))
    session = SimpleNamespace(
        plan=plan, interrupt=asyncio.Event(), log_dir=tmp_path, display=Display(), stranded=[]
    )
    results: list[RoundResult] = []
    asyncio.run(runner._run_cases(cast(Session, session), results, None))
    shown = Secrets(held=frozenset({"open sesame"})).hide_in(results)
    for each in (results, shown):
        assert len({id(cast(Any, one.provenance).hosts[0]) for one in each}) == 1 and len(each) == 3
