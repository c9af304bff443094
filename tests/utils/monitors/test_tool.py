"""Devices sampled by a command-line tool: a script stands for the vendor's."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from utils.errors import FlagPerfError
from utils.monitors import tool
from utils.monitors.tool import Tool, number_of, run_tool
from utils.telemetry.records import Sample


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Makes an executable of a shell script's lines; returns its path."""

    def make(lines: str) -> str:
        path = tmp_path / "acme-smi"
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


def parse(text: str) -> Mapping[str, Sample]:
    """Lines as `0 65.5W`."""
    rows = (line.split() for line in text.splitlines())
    return {number: Sample(0, "", power_w=number_of(power)) for number, power in rows}


def acme(command: str) -> Tool:
    return Tool("acme", "power: of the board", (command,), parse)


def test_each_device_has_a_sample_and_one_that_fell_off_an_error(script: Callable[[str], str]) -> None:
    devices = acme(script("echo 0 65.5W; echo 1 N/A")).open()
    assert devices.sample(7) == [
        Sample(7, "acme", "0", power_w=65.5),
        Sample(7, "acme", "1"),
    ]
    script("echo 1 70W; echo 2 71W")
    lost, *rest = devices.sample(8)
    assert lost.device == "0" and lost.power_w is None and "does not list it any more" in lost.error
    assert [(each.device, each.power_w) for each in rest] == [("1", 70.0), ("2", 71.0)]


def test_a_tool_speaks_the_c_locale_and_reads_no_input(
    script: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    assert run_tool((script('cat; echo "$LC_ALL $LANG"'),)) == "C C\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("echo no driver >&2; exit 9", "ended with 9: no driver"),
        ("exit 3", "ended with 3: it says nothing"),
        ("echo 0", "is not understood"),
        ("true", "lists no device"),
        ("sleep 60", "did not end within 0.5 s"),
        ("yes", "printed more than 4194304 bytes"),
        ("yes >&2", "printed more than 4194304 bytes"),
        ("exec >&- 2>&-; exec sleep 60", "did not end within 0.5 s"),
    ],
)
def test_what_is_wrong_is_named(
    script: Callable[[str], str], lines: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, *others = tool.run_tool.__defaults__ or ()
    monkeypatch.setattr(tool.run_tool, "__defaults__", (0.5, *others))
    with pytest.raises(FlagPerfError, match=message):
        acme(script(lines)).open()


def test_of_words_that_are_cut_no_part_of_one_is_left(script: Callable[[str], str]) -> None:
    """It may be of a secret, of which a part is not known again."""
    last = "x " * (tool.MOST_SHOWN // 2 - 2)
    with pytest.raises(FlagPerfError) as caught:
        run_tool((script(f"echo no such key: zqSecret77 {last}; exit 3"),))
    assert caught.value.message.endswith(f"ended with 3: ... {last.strip()}")


def test_of_one_long_word_that_is_left_out_it_is_said(script: Callable[[str], str]) -> None:
    with pytest.raises(FlagPerfError, match=r"ended with 3: \.\.\. \(one long word, left out\)$"):
        run_tool((script(f"echo {'zqSecret77' * tool.MOST_SHOWN}; exit 3"),))


def test_a_tool_that_is_not_there_or_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="there is no acme-smi") as caught:
        acme("acme-smi").open()
    assert "CONTAINER_OPTIONS" in caught.value.remedy
    (tmp_path / "folder").mkdir()
    with pytest.raises(FlagPerfError, match=f"cannot be started: {os.strerror(13)}"):
        acme(str(tmp_path / "folder")).open()


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("45C", 45.0),
        (" 65.5 W", 65.5),
        ("1024MiB", 1024.0),
        ("-5 C", -5.0),
        ("N/A", None),
        ("-", None),
        ("", None),
    ],
)
def test_numbers_of_cells(cell: str, value: float | None) -> None:
    assert number_of(cell) == value
