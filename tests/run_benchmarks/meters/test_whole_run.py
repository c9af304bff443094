"""A whole run on this machine whose power a simulated BMC tells: in the plan, the preflight and the figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.plan import meters as plan_meters
from tests.ports import free_port
from tests.run_benchmarks.meters.simulators import (
    PASSWORD,
    USER,
    Simulated,
    chassis,
    link,
    power,
    redfish_bmc,
)
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run

VARIABLE = "METER_OF_THE_TESTS"
TRAINED_S = 3.0
METERS = 'POWER_METERS = {{"localhost": {{"address": "https://127.0.0.1:{port}", {more}}}}}\n'


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[Simulated]:
    resources = chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": power(312)}
    with redfish_bmc(tmp_path / "bmc", resources) as simulated:
        yield simulated


@pytest.fixture
def run(tmp_path: Path, bmc: Simulated, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    """A run of a toy that trains for some seconds."""
    run = make_whole_run(tmp_path / "run", free_port(), monkeypatch)
    script = run.tree.training / "benchmarks/toy/pytorch/run_pretraining.py"
    text = script.read_text().replace("sleep(0.05)", f"sleep({TRAINED_S})")
    script.write_text(
        text.replace("raw_train_time=0.05", f"raw_train_time={TRAINED_S}").replace(
            "e2e_time=0.1", f"e2e_time={TRAINED_S + 1}"
        )
    )
    run.configure('MONITORS = {"redfish": 0.2}\n')
    monkeypatch.setenv(VARIABLE, PASSWORD)
    use(run, bmc.port, f'"user": "{USER}", "pass_env": "{VARIABLE}", "ca_file": "{bmc.ca_file}"')
    return run


# Ends the monitor as the kernel would for want of memory; `timeout`, which it runs in, has its arguments too.
KILL_THE_MONITOR = """\
import os, signal
from pathlib import Path

for each in Path("/proc").glob("[0-9]*"):
    try:
        words = (each / "cmdline").read_bytes().split(b"\\0")
    except OSError:
        continue
    if b"utils.monitors" in words and {folder!r}.encode() in b" ".join(words) and b"timeout" not in words[0]:
        os.kill(int(each.name), signal.SIGKILL)
"""


def use(run: WholeRun, port: int, more: str) -> None:
    conf = run.tree.config / "cluster_conf.py"
    written = [line for line in conf.read_text().splitlines(keepends=True) if "POWER_METERS" not in line]
    conf.write_text("".join(written) + METERS.format(port=port, more=more))


def test_the_power_of_the_bmc_is_the_machines(run: WholeRun, bmc: Simulated) -> None:
    assert run.main("run") == 0
    (result,) = run.summary["rounds"]
    energy, mean = result["figures"]["energy"], result["figures"]["avg_power"]
    assert mean["value"] == pytest.approx(312, rel=0.01) and mean["scope"] == "machine"
    assert energy["value"] == pytest.approx(312 * TRAINED_S, rel=0.1) and energy["coverage"] > 0.95
    assert "redfish (machine)" in energy["source"]
    (round_folder,) = run.result.glob("*/round1")
    meters = round_folder / "localhost_noderank0.meters.jsonl"
    assert meters.is_file() and not list(round_folder.glob("*_noderank0/*meters*"))
    lines = [json.loads(line) for line in meters.read_text().splitlines()]
    (note,) = {line["note"] for line in lines if line["kind"] == "source" and not line.get("reason")}
    assert note.startswith("power of the whole machine in W, by redfish at 127.0.0.1")
    check = next(each for each in run.summary["preflight"]["localhost"] if each["name"] == "power meter")
    assert check["status"] == "ok" and check["detail"].startswith("312 W: ")
    for file in run.result.rglob("*"):
        assert not file.is_file() or PASSWORD not in file.read_text(errors="replace"), file
    assert run.main("show", str(run.result), "--rescore") == 0


def test_a_bmc_that_is_gone_costs_the_round_nothing(
    run: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    use(run, free_port(), '"accept_self_signed": True')
    assert run.main("run") == 0
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "CONVERGED"
    assert any("power from outside was not read all the time" in note for note in result["notes"])
    assert any("cannot be asked" in note for note in result["notes"])
    check = next(each for each in run.summary["preflight"]["localhost"] if each["name"] == "power meter")
    assert check["status"] == "warning" and "reaches it" in check["remedy"]


def test_the_plan_says_who_is_asked_and_asks_nobody(
    run: WholeRun, bmc: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    log = bmc.folder.with_name("simulator.log")
    before = log.stat().st_size
    assert run.main("plan") == 0
    assert (
        f"# power of localhost: this machine asks redfish at 127.0.0.1:{bmc.port}, every 0.2 s"
        in capsys.readouterr().out
    )
    assert log.stat().st_size == before


def test_doctor_says_what_is_wrong_with_a_meter(
    run: WholeRun, bmc: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    use(run, bmc.port, f'"user": "{USER}", "pass_env": "{VARIABLE}"')
    assert run.main("doctor", "--no-cases") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "power meter" in text and "not to be trusted" in text and "ca_file" in text
    plan_meters._FROM_ENVIRONMENT.clear()  # as in a process that was started without it
    assert run.main("doctor", "--no-cases") == 2
    assert f"the environment has no {VARIABLE}" in capsys.readouterr().err


def test_a_monitor_that_is_killed_is_told_where_the_bmc_still_has_power(run: WholeRun) -> None:
    script = run.tree.training / "benchmarks/toy/pytorch/run_pretraining.py"
    script.write_text(KILL_THE_MONITOR.format(folder=str(run.folder)) + script.read_text())
    assert run.main("run") == 0
    (result,) = run.summary["rounds"]
    (note,) = (note for note in result["notes"] if "monitor" in note)
    assert note.startswith("localhost: its monitor ended before the round did, with exit code 137")
    assert result["figures"]["energy"]["value"] is not None
