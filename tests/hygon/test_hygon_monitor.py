"""The hy-smi monitor: its parser against changed recordings; the tool itself is a script that prints it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "hygon"
RENAMED = "k100ai_json_driver6.3.13_vendor_renamed"
ONE_OPTION_EACH = "bw_json_one_option_each"


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "hygon_monitor.py", "hygon_monitor_under_test")


def test_what_no_option_asked_for_is_not_measured(monitor: ModuleType) -> None:
    _, _, _, use, _ = recording("hygon", ONE_OPTION_EACH).splitlines()
    samples = monitor.parse(use).values()
    assert [(sample.utilisation, sample.power_w) for sample in samples] == [(0, None), (0.275, None)]


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ('"HCU use (%)": "0.0"', '"DCU use (%)": "74"', "utilisation", 0.74),
        ('"HCU use (%)": "0.0"', '"HCU use (%)": "N/A"', "utilisation", None),
        ('"vram Total Memory (MiB)": "65520"', '"vram Total Memory (B)": "68702699520"', "memory_total_mib", 65520),
        ('"Temperature (Sensor junction) (C)": "46.0", ', "", "temperature_c", None),
    ],
)  # fmt: skip
def test_releases_differ_in_keys_and_units(
    monitor: ModuleType, key: str, value: str, field: str, expected: float | None
) -> None:
    text = recording("hygon", RENAMED)
    assert key in text
    (sample,) = monitor.parse(text.replace(key, value)).values()
    assert (getattr(sample, field), sample.error) == (expected, "")


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ('"78.0"', '"8.0"', "a power of 8 W"),
        ('"78.0"', '"65535"', "a power of 65535 W"),
        ('junction) (C)": "46.0"', 'junction) (C)": "0.0"', "a temperature of 0 C"),
    ],
)
def test_what_cannot_be_is_an_error_of_the_card(
    monitor: ModuleType, key: str, value: str, error: str
) -> None:
    text = recording("hygon", RENAMED)
    (sample,) = monitor.parse(text.replace(key, value)).values()
    assert (sample.error, sample.memory_used_mib) == (error, 2)
    assert None in (sample.power_w, sample.temperature_c)


def hy_smi(folder: Path, refused: str) -> str:
    """A script in place of hy-smi: prints a recording unless it gets the option `refused`."""
    (folder / "printed").write_text(recording("hygon", RENAMED))
    script = folder / "hy-smi"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *{refused}*) echo unrecognized arguments >&2; exit 2 ;; esac\n'
        f'cat "{folder}/printed"\n'
    )
    script.chmod(0o755)
    return str(script)


def test_a_release_without_power_is_sampled_all_the_same(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(monitor, "HY_SMI", hy_smi(tmp_path, "--showpower"))
    devices = monitor.open_devices()
    assert "tells no power" in devices.note
    (sample,) = devices.sample(9)
    assert (sample.time_ms, sample.device, sample.memory_total_mib) == (9, "0", 65520)
    monkeypatch.setattr(monitor, "HY_SMI", hy_smi(tmp_path, "--json"))
    with pytest.raises(FlagPerfError, match="ended with 2: unrecognized arguments"):
        monitor.open_devices()


def test_the_inventory_has_no_serial_numbers(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(monitor, "DESCRIBE_COMMAND", (hy_smi(tmp_path, "nothing"),))
    assert monitor.describe_devices() == [
        {
            "name": "K100_AI",
            "pci_device": "0x6210",
            "vendor": "Chengdu C-3000 IC Design Co., Ltd.",
            "driver": None,
        }
    ]
