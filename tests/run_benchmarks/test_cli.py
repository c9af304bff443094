"""The command line: what it does, what it prints, what it exits with, what it leaves."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks import follow, verbs
from run_benchmarks.own_folder import make_run_folder
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.stages import collect
from tests.ports import reserved_port
from tests.run_benchmarks.plan.tree import CLUSTER_CONF, TEST_CONF
from tests.run_benchmarks.whole_run import REAL_TRAINING, WholeRun, make_whole_run
from tests.run_benchmarks.written_run import SCHEMA1
from tests.structure import CONTROLLER_PACKAGES

Capture = pytest.CaptureFixture[str]
CASE = "toy:pytorch:X1:1:1:1"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        yield make_whole_run(tmp_path, port, monkeypatch)


# ---- runs


def test_a_run_that_converges(run: WholeRun, capsys: Capture) -> None:
    assert run.main() == 0, capsys.readouterr().err
    shown = capsys.readouterr()
    assert "CONVERGED" in shown.out and f"results and logs: {run.result}" in shown.out
    for step in ("Step 1: check", "Step 2: run the cases", "Step 3: results"):
        assert step in shown.err
    assert {path.name for path in run.result.iterdir()} == {
        *(
            "flagperf_run.log",
            "journal.jsonl",
            "plan.json",
            "report.html",
            "summary.json",
            "summary.md",
            CASE,
        ),
    }
    node = run.result / CASE / "round1" / "localhost_noderank0"
    names = {path.name for path in node.iterdir()}
    assert {"rank0.out.log", "start_pytorch_task.log", "cpu_monitor.log", "telemetry.jsonl"} <= names
    result = json.loads((run.result / CASE / "round1" / "result.json").read_text())
    assert result["verdict"] == "CONVERGED"
    assert result["figures"]["p_train"]["value"] == 2500.0
    assert result["figures"]["round_time"]["value"] > 0
    assert set(result["times"]) == {"acquire", "deploy", "image", "launch", "train", "collect", "clean_up"}
    assert re.sub(r"\D", "", run.summary["started"][:19]) == run.result.name.removeprefix("run")
    first = json.loads((run.result / "journal.jsonl").read_text().partition("\n")[0])
    assert first["started"] == run.summary["started"]
    # The log of the run is in the file too, and nothing is left on the host but the tree.
    assert "CONVERGED" in (run.result / "flagperf_run.log").read_text()
    assert run.units_left() == []
    assert [path.name for path in run.host.iterdir() if path.name.startswith("tree-")]
    assert not list(run.host.glob("runs/*"))
    assert journal_of(run) == [
        ("run_started", None),
        ("checked", None),
        ("round_started", None),
        ("stage", "acquire"),
        ("acquired", None),
        ("stage", "deploy"),
        ("stage", "image"),
        ("stage", "launch"),
        ("started", None),
        ("stage", "train"),
        ("stage", "collect"),
        ("stage", "clean_up"),
        ("round_ended", None),
        ("run_ended", None),
    ]


def journal_of(run: WholeRun) -> list[tuple[str, str | None]]:
    """The state changes that a run recorded; others may run on this machine meanwhile."""
    records = map(json.loads, (run.result / "journal.jsonl").read_text().splitlines())
    changes = [(record["event"], record.get("stage")) for record in records]
    return [each for each in changes if each != ("neighbours", None)]


def test_a_run_that_fails_exits_with_1_and_says_why(run: WholeRun, capsys: Capture) -> None:
    run.behave("fail")
    assert run.main() == 1
    shown = capsys.readouterr()
    log = run.result / CASE / "round1" / "localhost_noderank0" / "rank0.out.log"
    failed = (
        "FAILED at the stage train on localhost (rank_failed): "
        "rank 0 ended with exit code 1: its last line: the toy breaks"
    )
    assert f"{failed} (more in {log})\n" in shown.err
    assert "PerfLog" not in shown.err and "Traceback" not in shown.err
    summary = (run.result / "summary.md").read_text()
    assert "the toy breaks" in summary
    assert "\ntraining/benchmarks/toy/pytorch/run_pretraining.py: it will break\n" in summary, "not the copy"
    (result,) = run.summary["rounds"]
    assert result["failure"]["class"] == "rank_failed"
    assert "the toy breaks" in log.read_text()
    assert run.units_left() == []


def test_a_run_that_does_not_converge_exits_with_1(run: WholeRun) -> None:
    run.behave("miss")
    assert run.main() == 1
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "NOT_CONVERGED" and result["shortfall"]
    log = (run.result / "flagperf_run.log").read_text()
    assert f"it did not converge: {result['shortfall']}" in log and "-> see the evaluations in" in log


def test_a_round_whose_checkpoints_were_not_written_says_so(run: WholeRun) -> None:
    run.behave("unsaved")
    run.main()
    notes = run.summary["rounds"][0]["notes"]
    assert any(note.startswith("3 checkpoints could not be written") for note in notes)
    assert "- 3 checkpoints could not be written" in (run.result / "summary.md").read_text()


def test_a_host_that_is_not_healthy_exits_with_3_and_launches_nothing(run: WholeRun, capsys: Capture) -> None:
    (run.folder / "data" / "behaviour").unlink()
    (run.folder / "data").rmdir()
    assert run.main() == 3
    shown = capsys.readouterr()
    assert "data: " in shown.err and "does not exist" in shown.err
    assert "put the data there on localhost" in shown.err
    assert "Step 2 is left out: nothing is launched" in shown.err
    assert run.summary["rounds"] == []
    refusal = f"the preflight failed: localhost: data: {run.folder}/data does not exist ({CASE})"
    assert run.summary["notes"] == [refusal, "no round was begun"]
    assert load_run(run.result, by_name_alone).notes == tuple(run.summary["notes"]), "each is said once"
    assert "put the data there on localhost" in (run.result / "summary.md").read_text()
    assert not list(run.host.glob("tree-*"))


@pytest.mark.parametrize("followed", [True, False])
def test_logs_that_cannot_be_collected_stay_on_the_host(
    followed: bool, run: WholeRun, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the round is judged by what was followed while it ran, if that came to the end."""
    monkeypatch.setattr(collect, "SEND", "false")
    monkeypatch.setattr(collect, "PAUSE_S", 0.0)
    if not followed:
        monkeypatch.setattr(follow, "KEPT_BYTES", 0)
    assert run.main() == (0 if followed else 1)
    (log,) = run.host.glob(f"runs/*/*/{CASE}/round1/localhost_noderank0/rank0.out.log")
    assert "FINISHED" in log.read_text()
    (result,) = run.summary["rounds"]
    if followed:
        assert result["verdict"] == "CONVERGED" and result["failure"] is None
        assert any("rank0.out.log could not be fetched" in note for note in result["notes"])
        assert any(str(log.parent) in note for note in result["notes"])
    else:
        assert result["failure"]["stage"] == "collect"
        assert str(log.parent) in result["failure"]["remedy"]
    assert not (run.result / CASE / "round1" / "localhost_noderank0").exists()
    assert run.units_left() == []
    capsys.readouterr()
    assert run.main("show", "latest", "--rescore") == 0
    assert f"{result['verdict']}, as before; 0 of" in capsys.readouterr().out


def test_the_tree_is_deployed_once_for_many_runs(run: WholeRun) -> None:
    for _ in range(2):
        assert run.main() == 0
    assert len(list(run.host.glob("tree-*"))) == 1
    deployed = [
        "deployed to" in (result / "flagperf_run.log").read_text()
        for result in sorted((run.folder / "result").iterdir())
    ]
    assert deployed == [True, False]


def test_a_tree_that_a_case_altered_is_deployed_anew(run: WholeRun, capsys: Capture) -> None:
    """A process can write where its code lies; the next round must not run what it wrote, and says so."""
    script = "benchmarks/toy/pytorch/run_pretraining.py"
    case = run.tree.training / script
    case.write_text(f'open(__file__, "a").write("raise SystemExit(7)")\n{case.read_text()}')
    run.configure(f'CASES = {{"toy:pytorch:X1:1:1:2": "{run.folder}/data"}}\n')
    assert run.main() == 0
    first, second = (result["notes"] for result in run.summary["rounds"])
    assert not any("was altered" in note for note in first)
    (note,) = [note for note in second if "was altered" in note]
    assert f"'./{script}'" in note and "deployed anew" in note
    assert note in (run.result / "flagperf_run.log").read_text()


def test_a_link_in_the_tree_exits_with_2(run: WholeRun, capsys: Capture) -> None:
    (run.tree.training / "acme" / "key").symlink_to("/etc/shadow")
    assert run.main() == 2
    assert "acme/key: is a link" in capsys.readouterr().err
    assert not (run.folder / "result").exists()
    assert not run.host.exists()


def test_the_options_of_the_command_line(run: WholeRun, tmp_path: Path) -> None:
    more = f'CASES["toy:pytorch:X1:1:1:2"] = "{run.folder}/data"\n'
    run.configure(more)
    assert run.main("run", "--cases", CASE, "--log-path", str(tmp_path / "elsewhere")) == 0
    (result,) = (tmp_path / "elsewhere").iterdir()
    assert [path.name for path in result.iterdir() if path.is_dir()] == [CASE]


def test_options_may_stand_before_the_verb(run: WholeRun, tmp_path: Path, capsys: Capture) -> None:
    assert run.main("--log-path", str(tmp_path / "elsewhere"), "plan") == 0
    assert f"# results go to {tmp_path / 'elsewhere'}/run" in capsys.readouterr().out


def test_a_run_folder_of_the_same_second_is_not_written_into(tmp_path: Path) -> None:
    folders = [make_run_folder(tmp_path / "result", tmp_path)[1] for _ in range(2)]
    assert folders[0] != folders[1]
    assert all(folder.is_dir() for folder in folders)


# ---- bad input


def test_a_wrong_configuration_exits_with_2(run: WholeRun, capsys: Capture) -> None:
    run.configure('SHM_SIZ = "1G"\nCLEAR_CACHES = "maybe"\nPIP_SOURCE = "https://u:word@host:x y/"\n')
    assert run.main() == 2
    shown = capsys.readouterr()
    assert "SHM_SIZ" in shown.err and "did you mean SHM_SIZE" in shown.err
    assert "CLEAR_CACHES" in shown.err
    assert "3 problems; nothing was done" in shown.err
    assert "word" not in shown.err
    assert not (run.folder / "result").exists()
    assert not run.host.exists()


def test_a_configuration_that_is_not_there_exits_with_2(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verbs.main(["--config", str(tmp_path / "nowhere")]) == 2
    assert "there is no such folder" in capsys.readouterr().err


def test_no_valid_case_exits_with_4(run: WholeRun, capsys: Capture) -> None:
    (run.tree.training / "acme/toy-pytorch/config/config_X1x1x1.py").unlink()
    assert run.main() == 4
    assert "config_X1x1x1" in capsys.readouterr().err


def test_an_unknown_case_is_refused(run: WholeRun, capsys: Capture) -> None:
    assert run.main("--cases", "toy:pytorch:X9:1:1:1") in (2, 4)
    assert "toy:pytorch:X9:1:1:1" in capsys.readouterr().err


def test_an_unknown_option_is_a_usage_error(run: WholeRun, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        run.main("--case", "x", "--no-such-option")
    assert caught.value.code == 2


def test_a_misspelt_verb_is_refused_with_the_one_that_was_meant(run: WholeRun, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        run.main("clenup")
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "'clenup' is none of the verbs run, cleanup, " in shown
    assert "did you mean cleanup?" in shown
    with pytest.raises(SystemExit):
        run.main("xyzzy")
    assert "run.py --help" in capsys.readouterr().err


# ---- the other verbs


def test_plan_prints_commands_and_touches_nothing(run: WholeRun, capsys: Capture) -> None:
    assert run.main("plan") == 0
    assert "utils/process_unit.py start" in capsys.readouterr().out
    assert not (run.folder / "result").exists()
    assert not run.host.exists()


def test_plan_as_json_holds_no_secrets(run: WholeRun, capsys: Capture) -> None:
    run.configure('PIP_SOURCE = "https://u:word@mirror/simple"\nIMAGE_BUILD_ARGS = {"A_TOKEN": "word"}\n')
    assert run.main("plan", "--json") == 0
    text = capsys.readouterr().out
    assert json.loads(text)["run"]["runtime"] == "process"
    assert "word" not in text


@pytest.mark.parametrize("words", [["--help"], ["plan", "--help"], ["cleanup", "--help"]])
def test_the_entry_point_helps_wherever_it_is_called_from(words: list[str], tmp_path: Path) -> None:
    script = str(REAL_TRAINING / "run_benchmarks" / "run.py")
    done = subprocess.run(
        [sys.executable, script, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--config DIR" in done.stdout
    if words == ["--help"]:
        for text in ("exit codes:", "plan", "cleanup", "130", "--cases", "--log-path"):
            assert text in done.stdout


def test_help_loads_no_package_and_a_missing_one_is_named_with_the_way_to_install_it(tmp_path: Path) -> None:
    """`verbs/` is loaded whole for the help; what a verb needs comes with the verb."""
    for package in CONTROLLER_PACKAGES:
        (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})\n")
    script = str(REAL_TRAINING / "run_benchmarks" / "run.py")

    def entry_point(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, script, *words], capture_output=True, text=True, check=False, env=env
        )

    assert entry_point("--help").returncode == 0
    done = entry_point("run")
    assert done.returncode == 1
    assert "is not installed" in done.stderr and "-m pip install -r" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_entry_point_reports_bad_input(tmp_path: Path) -> None:
    (tmp_path / "cluster_conf.py").write_text(CLUSTER_CONF)
    (tmp_path / "test_conf.py").write_text(TEST_CONF + "def broken(:\n")
    command = [sys.executable, "run_benchmarks/run.py", "--config", str(tmp_path)]
    done = subprocess.run(command, cwd=REAL_TRAINING, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "test_conf.py" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", ["plan", "plan --json", "show", "show --json", "cleanup", "--help", "nonsense 2>&1"]
)
def test_a_reader_that_has_read_enough_sees_no_traceback(words: str, run: WholeRun) -> None:
    """As in `run.py plan | head -n 1`; also where Python writes at once, and where the reader was gone before."""
    shutil.copytree(next((SCHEMA1 / "torn").iterdir()), run.folder / "result" / "run20260102030405")
    program = shlex.join(run.command())
    for python, reader in ((program, "true"), (f"env PYTHONUNBUFFERED=1 {program}", "head -n 1")):
        pipe = f"{{ {python} {words}; echo $? >&3; }} 2>&4 | {reader}"
        script = f"exec 3>{shlex.quote(str(run.folder / 'code'))} 4>&1; {pipe} >/dev/null"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.stdout == done.stderr == ""
        assert (run.folder / "code").read_text() in ("0\n", "141\n", "2\n")


@pytest.mark.parametrize(("words", "code"), [("", 0), ("plan", 74), ("show --json", 74), ("cleanup", 74)])
@pytest.mark.parametrize("output", [">&-", ">/dev/full"])
def test_output_that_cannot_be_printed_is_said_and_a_run_keeps_its_code(
    words: str, code: int, output: str, run: WholeRun
) -> None:
    shutil.copytree(next((SCHEMA1 / "torn").iterdir()), run.folder / "result" / "run20260102030405")
    command = ["bash", "-c", f"{shlex.join(run.command())} {words} {output}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("be printed" if code == 0 else "standard output cannot be written") == 1
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", [["show"], ["cleanup"], ["--config"], ["--log-path"], ["--continue-from"]])
def test_a_name_that_no_file_can_have_is_refused(words: list[str], run: WholeRun, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        run.main(*words, "x" * 5000)
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "no file can have this name of 5000 characters" in shown and "x" * 100 not in shown


@pytest.mark.parametrize("words", [["show"], ["cleanup"], ["--config"], ["--log-path"], ["--continue-from"]])
def test_an_unset_variable_of_a_script_is_refused(words: list[str], run: WholeRun, capsys: Capture) -> None:
    """`--continue-from "$RUN"` began anew, `show "$RUN"` showed the folder that it happened to be called in."""
    with pytest.raises(SystemExit) as caught:
        run.main(*words, "")
    assert caught.value.code == 2
    assert "it is empty" in capsys.readouterr().err


@pytest.mark.parametrize("script", ["quickstart.sh", "test.sh"])
def test_a_script_finds_its_parts_where_it_is_called_through_a_link(script: str, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(REAL_TRAINING.parent / script, checkout)
    (checkout / "scripts" / "machine.sh").write_text("pwd; exit 0\n")
    (tmp_path / "link").symlink_to(checkout / script)
    done = subprocess.run([tmp_path / "link"], capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{checkout}\n", "")
