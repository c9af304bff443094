"""The preflight for a terminal: a count of what is well, and what is not."""

from __future__ import annotations

import pytest

from run_benchmarks.health import report_health
from run_benchmarks.results.preflight_fold import MOST_ANSWERS, count_text, fold
from run_benchmarks.run_log import log_briefly
from run_benchmarks.stages.checks import Check, Status

GOOD = [Check(name, Status.OK, "fine") for name in ("reachable", "engine", "data")]
SKIPPED = Check("checkpoints", Status.SKIPPED, "")


def clock(seconds: float) -> Check:
    return Check("clock", Status.WARNING, f"+{seconds} s", "start NTP")


def test_all_is_well() -> None:
    checks = {"h1": [*GOOD, SKIPPED], "h2": GOOD}
    assert count_text(checks) == "2 hosts: 3 checks ok"
    assert fold(checks) == []
    assert count_text({"h1": [GOOD[0]]}) == "1 host: 1 check ok"
    assert count_text({"h1": [clock(0.7)]}) == "1 host: 0 of 1 checks ok"


def test_a_check_is_ok_if_it_is_on_every_host() -> None:
    checks = {"h1": [*GOOD, clock(0.7)], "h2": [*GOOD, Check("clock", Status.OK, "fine")]}
    assert count_text(checks) == "2 hosts: 3 of 4 checks ok"
    assert fold(checks) == [(Status.WARNING, "h1  clock  +0.7 s\n-> start NTP")]


def test_errors_come_last_and_columns_are_aligned() -> None:
    gone = Check("reachable", Status.ERROR, "no answer\n in 30 s", "start sshd")
    rows = fold({"a-host": [gone], "h2": [*GOOD, clock(0.7)]})
    assert rows == [
        (Status.WARNING, "h2      clock      +0.7 s\n-> start NTP"),
        (Status.ERROR, "a-host  reachable  no answer in 30 s\n-> start sshd"),
    ]


def test_hosts_that_say_the_same_share_a_row_and_many_answers_are_counted() -> None:
    alike = {f"node{number}": [*GOOD, clock(0.7)] for number in range(100)}
    assert [text for _, text in fold(alike)] == ["node[0-99]  clock  +0.7 s\n-> start NTP"]
    few = {f"node{number}": [clock(0.7)] for number in range(3)}
    assert fold(few)[0][1].startswith("node[0-2]  clock")
    apart = {f"{name}-node": [clock(0.7)] for name in "abcdefgh"}
    assert fold(apart)[0][1].startswith("a-node and 7 more  clock")
    gone = {
        f"n{number}": [Check("reachable", Status.ERROR, f"no answer from n{number}")] for number in range(9)
    }
    assert [text for _, text in fold(gone)] == ["n[0-8]  reachable  no answer from <host>"]
    different = {f"node{number}": [clock(number)] for number in range(100)}
    rows = [text for _, text in fold(different)]
    assert len(rows) == MOST_ANSWERS + 1
    assert rows[-1].startswith("95 more hosts  clock  the same with other figures")


def test_a_terminal_gets_the_fold_alone(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[tuple[str, str]] = []
    log_briefly("info", lambda level, line: shown.append((level, line)))
    report_health({"h1": [*GOOD, clock(0.7)], "h2": GOOD})
    assert [level for level, _ in shown] == ["INFO", "WARNING"]
    assert shown[0][1].endswith(" INFO    2 hosts: 3 of 4 checks ok")
    assert shown[1][1].endswith(f" WARNING h1  clock  +0.7 s\n{' ' * 17}-> start NTP")
    shown.clear()
    report_health({})
    assert shown == []
