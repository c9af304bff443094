"""The monitor part: recordings of every shipped vendor, and a parser that misreads one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from run_benchmarks.conformance import monitor
from run_benchmarks.conformance.records import CheckOutcome, CheckResult, Options
from run_benchmarks.plan.vendors import find_vendors
from tests.run_benchmarks.conformance.conftest import TRAINING, edit

LIST, READINGS = "Acme A1, 65536 MiB\nAcme A2, 98304 MiB\n", "0, 93 %, 412 W, 1024, 65536, N/A\n"
OF_LIST, OF_SAMPLES = "the device list of recordings", "samples of recordings"
DEVICES = {"devices": ["Acme A1, 65536 MiB", "Acme A2, 98304 MiB"], "chips": ["A1"]}
SAMPLE = {"utilisation": 0.93, "power_w": 412, "memory_used_mib": 1024, "memory_total_mib": 65536}


def checks(vendor: Path) -> dict[str, CheckResult]:
    return {check.name: check for check in monitor.checks(vendor, Options(Path(sys.executable)))}


def record(vendor: Path, name: str, printed: str, **expected: object) -> None:
    folder = vendor / "recordings"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(printed)
    about = {"source": "made up for a test", "command": "acme-smi", **expected}
    (folder / f"{name}.json").write_text(json.dumps(about))


def record_all(vendor: Path) -> None:
    record(vendor, "list", LIST, **DEVICES)
    record(vendor, "readings", READINGS, samples={"0": SAMPLE})
    record(vendor, "trouble", "acme-smi: no driver\n", devices_error="reports trouble: acme-smi: no driver")


@pytest.mark.parametrize("vendor", find_vendors(TRAINING))
def test_every_shipped_vendor_reads_its_recordings(vendor: str) -> None:
    assert not [check for check in checks(TRAINING / vendor).values() if check.outcome is CheckOutcome.FAILED]


def test_without_recordings_nothing_is_proven(acme: Path) -> None:
    assert {
        name: check.outcome for name, check in checks(acme).items() if "list" in name or "samples" in name
    } == {
        "the device list of recordings": CheckOutcome.NOT_PROVEN,
        "samples of recordings": CheckOutcome.NOT_PROVEN,
    }


def test_recordings_are_replayed(acme: Path) -> None:
    record_all(acme)
    assert {check.outcome for check in checks(acme).values()} == {CheckOutcome.PASSED}


@pytest.mark.parametrize(
    ("file", "old", "new", "name", "words"),
    [
        (
            "vendor.py",
            "return lines",
            "return lines[:1]",
            OF_LIST,
            '1: null in place of "Acme A2, 98304 MiB"',
        ),
        ("vendor.py", "return lines", "return stdout[9**9]", OF_LIST, "index out of range (vendor.py:"),
        (
            "vendor.py",
            "if not _DEVICE.fullmatch(line)",
            "if not line",
            OF_LIST,
            "returns ['acme-smi: no driver']",
        ),
        ("acme_monitor.py", "percent / 100", "percent", OF_SAMPLES, "0: utilisation: 93.0 in place of 0.93"),
        ("acme_monitor.py", "number_of(heat)", "0.0", OF_SAMPLES, "temperature_c: 0.0 in place of null"),
        (
            "acme_monitor.py",
            "return dict(_device",
            "return list(_device",
            OF_SAMPLES,
            "no error, and returns [('0', Sample(",
        ),
        (
            "acme_monitor.py",
            "return dict(_device",
            "return [] and dict(_device",
            OF_SAMPLES,
            "[] in place of {",
        ),
        (
            "acme_monitor.py",
            "def parse(",
            "def read(",
            OF_SAMPLES,
            "it has no parse(text), of which recordings",
        ),
        ("acme_monitor.py", "import annotations", "import nothing", OF_SAMPLES, "nothing"),
        ("vendor.py", '"Acme A1,"', '"Acme A9,"', "chips of recordings", "taken for [], not ['A1']"),
        ("recordings/list.json", "devices", "device", "recordings can be read", "device says nothing"),
        ("recordings/list.json", '"source"', '"where"', "recordings can be read", "where says nothing"),
        (
            "recordings/list.json",
            '"acme-smi"',
            '"acme-smi \'list"',
            "recordings can be read",
            "No closing quotation",
        ),
        ("recordings/list.json", '"acme-smi"', '"acme\\u0000smi"', "recordings can be read", "it has a NUL"),
    ],
)
def test_what_misreads_is_named(acme: Path, file: str, old: str, new: str, name: str, words: str) -> None:
    record_all(acme)
    edit(acme / file, old, new)
    check = checks(acme)[name]
    assert check.outcome is CheckOutcome.FAILED
    assert words in check.detail and str(acme) in check.where and check.remedy


def test_a_field_that_no_sample_has_and_a_file_that_is_no_json(acme: Path) -> None:
    record(acme, "readings", READINGS, samples={"0": {"power": 412}})
    (acme / "recordings" / "torn.json").write_text('{"source": ')
    (check, torn) = (
        each for each in monitor.checks(acme, Options(Path(sys.executable))) if each.name.endswith("read")
    )
    assert (check.detail, check.remedy) == ("`power` is no field of a sample", "did you mean power_w?")
    assert "not JSON" in torn.detail and "CONTRIBUTING.md" in torn.remedy


def test_a_monitor_that_nothing_opens(acme: Path) -> None:
    edit(acme / "acme_monitor.py", "def open_devices(", "def open_all(")
    check = checks(acme)["open_devices"]
    assert check.outcome is CheckOutcome.FAILED and "no open_devices()" in check.detail and check.remedy


def test_a_monitor_that_python_cannot_parse_for_its_depth_ends_no_check(acme: Path) -> None:
    record_all(acme)
    (acme / "acme_monitor.py").write_text(f"x = {'-' * 20_000}1\n")
    assert CheckOutcome.FAILED in {check.outcome for check in checks(acme).values()}


def test_a_recording_that_nothing_is_said_of(acme: Path) -> None:
    record(acme, "list", LIST)
    (acme / "recordings" / "other.txt").write_text(LIST)
    trouble = [
        check.detail
        for check in monitor.checks(acme, Options(Path(sys.executable)))
        if check.outcome is CheckOutcome.FAILED
    ]
    assert trouble == ["says nothing of what must come of it", "nothing says what must come of it"]
