"""The shell functions that set up a machine: parts side by side, files that nobody's edits are lost from, options."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems

ROOT = Path(__file__).resolve().parents[1]


def shell(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run `script` with the functions of scripts/ in `folder`."""
    head = f"set -euo pipefail; NAME=setup LOGS={folder}/logs; . {ROOT}/scripts/machine.sh; . {ROOT}/scripts/parts.sh\n"
    argv = ["bash", "-c", head + script]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


# ---- files that the script writes


def written(folder: Path, content: str) -> str:
    """What is said while a file `conf.py` is written."""
    done = shell(folder, f"write_own conf.py <<'END'\n{content}\nEND")
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_file_is_written_anew_while_nobody_has_edited_it(tmp_path: Path) -> None:
    file = tmp_path / "conf.py"
    assert written(tmp_path, 'A = 1\n\nB = "x"') == ""
    assert file.read_text().startswith('A = 1\n\nB = "x"\n')
    assert written(tmp_path, "A = 2") == ""
    problems = Problems()
    read = read_config_file(file, problems, "")
    assert read is not None and read.values == {"A": 2} and not problems


@pytest.mark.parametrize(
    "edit", ["A = 1\n", "A = 1\nC = 3\n", ""], ids=["without the mark", "added", "emptied"]
)
def test_what_somebody_has_edited_is_left_as_it_is_and_the_difference_told(tmp_path: Path, edit: str) -> None:
    written(tmp_path, "A = 1")
    file = tmp_path / "conf.py"
    file.write_text(edit)
    message = written(tmp_path, "A = 2")
    assert file.read_text() == edit
    assert "conf.py has been edited: it is left as it is" in message
    assert "> A = 2" in message
    if edit:
        assert "< A = 1" in message


def test_a_line_added_below_the_mark_is_an_edit_too(tmp_path: Path) -> None:
    written(tmp_path, "A = 1")
    file = tmp_path / "conf.py"
    file.write_text(edited := file.read_text() + "B = 5\n")
    assert "< B = 5" in written(tmp_path, "A = 2")
    assert file.read_text() == edited


@pytest.mark.parametrize("text", ["/home/a b", 'quote " and \\ in it', "$HOME `ls`"])
def test_a_path_is_written_as_python_reads_it(tmp_path: Path, text: str) -> None:
    done = shell(tmp_path, 'python_text "$(cat text)"') if (tmp_path / "text").write_text(text) else None
    assert done is not None and ast.literal_eval(done.stdout) == text


# ---- parts


PARTS = """
quick() { say "begun"; echo "for the log" >&2; }
slow() { say "sleeping"; sleep 50; }
bad() { echo "the tool's own words" >&2; die "it cannot be had" "do this"; }
"""


def test_parts_say_what_they_do_and_keep_the_rest_in_their_logs(tmp_path: Path) -> None:
    done = shell(tmp_path, PARTS + "begin one quick; begin two quick; finish one two; stages")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("setup: begun\n") == 2
    assert "for the log" not in done.stderr
    assert "for the log" in (tmp_path / "logs/two.log").read_text()
    assert {line.split()[-1] for line in done.stderr.splitlines() if " s  " in line} == {"one", "two"}


def test_a_part_that_fails_ends_the_others_and_the_script(tmp_path: Path) -> None:
    done = shell(
        tmp_path, PARTS + "trap end_parts EXIT; begin one slow; begin two bad; finish one two; echo end"
    )
    assert done.returncode == 1
    assert "end" not in done.stdout
    said = done.stderr.replace("setup: sleeping\n", "")  # of the other part: when it comes, or not at all
    assert "setup: it cannot be had\nsetup:   -> do this\n" in said
    assert f"two failed; the end of its log, {tmp_path}/logs/two.log:\n    the tool's own words\n" in said


@pytest.mark.usefixtures("hangup_is_heeded")
@pytest.mark.parametrize(("name", "code"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_no_part_outlives_the_script(tmp_path: Path, name: str, code: int) -> None:
    script = f"end_parts_with_script; begin one slow; echo ${{PART_PID[one]}}; kill -{name} $$; finish one"
    done = shell(tmp_path, PARTS + script)
    assert done.returncode == code
    assert not Path("/proc", done.stdout.strip()).exists()


def test_a_long_part_is_said_to_go_on(tmp_path: Path) -> None:
    done = shell(tmp_path, "part() { say working; sleep 3; }; STILL_EVERY_S=1; begin long part; finish long")
    assert " s of long, still: working" in done.stderr


# ---- quickstart.sh's command line


def quickstart(*options: str) -> subprocess.CompletedProcess[str]:
    argv = [str(ROOT / "quickstart.sh"), *options]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_help_sets_nothing_up() -> None:
    for option in ("--help", "-h"):
        done = quickstart(option)
        assert (done.returncode, done.stderr) == (0, "")
        assert "./quickstart.sh [--all]" in done.stdout


def test_a_mistyped_option_is_refused_before_anything_is_set_up() -> None:
    done = quickstart("--al")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "quickstart: there is no option --al"
    done = quickstart("--all", "--", "--log-paht", "/x")
    assert done.returncode == 2 and done.stderr.startswith("usage: run.py")
