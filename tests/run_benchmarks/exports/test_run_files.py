"""What an export reads of a run's folder and of the checkout: what it looked at, bounded, and of nobody else."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.exports.ais_bench import export_ais_bench
from run_benchmarks.exports.archive import export_archive
from run_benchmarks.exports.deployed_code import code_of, environment_scripts
from run_benchmarks.exports.mlperf import export_mlperf
from run_benchmarks.exports.planned_run import ExportedPlan, read_plan
from run_benchmarks.exports.run_files import RunFile, files_below
from run_benchmarks.plan.secrets import NO_SECRETS, by_name_alone
from run_benchmarks.results.load import load_run
from tests.run_benchmarks.exports.demo_run import CASE, DEMO, change_events, change_json, copied, rank_log
from tests.run_benchmarks.exports.test_archive import contents
from utils.errors import FlagPerfError
from utils.text_files import opened


def a_file(folder: Path) -> tuple[Path, RunFile]:
    path = folder / "node" / "rank0.log"
    path.parent.mkdir(parents=True)
    path.write_text("step 1\n")
    return path, next(files_below(folder))


@pytest.mark.parametrize("change", ["link", "folder", "more", "same size"])
def test_what_was_put_in_a_files_place_since_it_was_looked_at_is_not_taken(
    change: str, tmp_path: Path
) -> None:
    """A log that became a link between the two looks brought a file of mode 0600 into the archive."""
    path, file = a_file(tmp_path / "run")
    assert list(file.blocks()) == ["step 1\n"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "rank0.log").write_text("secret")
    if change == "folder":
        path.parent.rename(tmp_path / "away")
        path.parent.symlink_to(tmp_path / "mine")
    elif change == "link":
        path.unlink()
        path.symlink_to(tmp_path / "mine" / "rank0.log")
    else:
        path.write_text("step 1\nstep 2\n" if change == "more" else "step 2\n")
    reason = "changed while the run was exported" if change in ("more", "same size") else "link"
    with pytest.raises(FlagPerfError, match=reason):
        list(file.blocks())


def test_what_changes_while_it_is_read_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(tmp_path)
    blocks, log = RunFile.blocks, rank_log(run)

    def changed_behind_the_first_look(file: RunFile) -> Iterator[str]:
        yield from blocks(file)
        if file.name.endswith("rank0.out.log"):
            os.utime(log)

    monkeypatch.setattr(RunFile, "blocks", changed_behind_the_first_look)
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, tmp_path)
    name = f"run/{CASE}/round1/localhost_noderank0/rank0.out.log"
    assert f"left out: {name}: it was changed while the run was exported" in notes
    assert name not in contents(tmp_path / "run.tar.gz")


def test_of_folders_in_a_link_nothing_is_opened_and_no_step_stays_open(tmp_path: Path) -> None:
    path, _ = a_file(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with opened(tmp_path / "link" / "node" / "rank0.log", below=tmp_path / "link") as file:
        assert file.read() == b"step 1\n"
    with (
        pytest.raises(FlagPerfError, match="a link"),
        opened(tmp_path / "link" / "node" / path.name, below=tmp_path),
    ):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_folder_that_becomes_a_link_meanwhile_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "run" / "b").mkdir(parents=True)
    (tmp_path / "run" / "a.log").write_text("a\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "name-of-a-customer").touch()
    files = files_below(tmp_path / "run")
    assert next(files).name == "a.log"
    (tmp_path / "run" / "b").rmdir()
    (tmp_path / "run" / "b").symlink_to(tmp_path / "secret")
    (listed,) = files
    assert listed.name == "b" and "cannot be listed" in listed.objection


def test_a_tree_that_is_deeper_than_any_run_is_named_and_not_looked_into(tmp_path: Path) -> None:
    tmp_path.joinpath(*("a" * 100)).mkdir(parents=True)
    (file,) = files_below(tmp_path)
    assert "more than 64 folders" in file.objection


@pytest.mark.parametrize(
    "name", ["{elsewhere}", "../elsewhere", "link.sh", "", ".", "a\0b", "x" * 5000, "none.sh"]
)
def test_a_plan_names_no_file_but_those_in_the_tree(name: str, tmp_path: Path) -> None:
    """What a file of this machine assigns was hidden in the archive, and so could be guessed by it."""
    tree, elsewhere = tmp_path / "training", tmp_path / "elsewhere"
    tree.mkdir()
    elsewhere.write_text("DB_PASSWORD=tr0ub4dor\n")
    (tree / "link.sh").symlink_to(elsewhere)
    plan = {"cases": [{"files": {"environment_script": name.format(elsewhere=elsewhere)}}]}
    assert all(each.objection for each in environment_scripts(plan, tree))


def test_a_script_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    run, code = copied(tmp_path), tmp_path / "code"
    code.mkdir()
    with (code / "set.sh").open("wb") as file:
        file.truncate(2**31)
    change_json(run / "plan.json", lambda plan: plan["cases"][0]["files"].update(environment_script="set.sh"))
    notes = export_archive(run, tmp_path / "run.tar.gz", NO_SECRETS, code)
    assert "what set.sh sets is not recognised: it is larger than 1073741824 bytes" in notes


def test_an_archive_is_its_owners_alone(tmp_path: Path) -> None:
    output = tmp_path / "run.tar.gz"
    export_archive(copied(tmp_path), output, NO_SECRETS, tmp_path)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


def test_paths_of_a_plan_that_are_none_are_refused(tmp_path: Path) -> None:
    for paths in (
        {"log_path": "/a\0b"},
        {"flagperf_path_container": "/a", "log_path_container": "/a/\ud800"},
    ):
        with pytest.raises(FlagPerfError, match="names a path that is none"):
            code_of(ExportedPlan(paths, ()), "0" * 64, tmp_path)


LONG = "/".join("a" * 3000)  # 5999 characters
DEEP = {"case_dir": f"nvidia/{LONG}", "script": f"nvidia/{LONG}/x.py", "extern_dir": f"nvidia/{LONG}/extern"}


@pytest.mark.parametrize("name", ["flagperf_path_container", "log_path_container", "log_path"])
def test_a_path_of_very_many_parts_in_a_plan_is_refused(name: str, tmp_path: Path) -> None:
    """One of 80,000 took 6 GB: each of its parents is a path again."""
    paths = {"flagperf_path_container": "/a", "log_path_container": "/a/b", "log_path": "/b"}
    with pytest.raises(FlagPerfError, match="names a path that is none"):
        code_of(ExportedPlan({**paths, name: f"/a/{LONG}"}, ()), "0" * 64, tmp_path)


@pytest.mark.parametrize("name", DEEP)
def test_so_is_one_of_a_case(name: str, tmp_path: Path) -> None:
    plan = json.loads((DEMO / "plan.json").read_text())
    plan["cases"][0]["files"][name] = DEEP[name]
    with pytest.raises(FlagPerfError, match="names a path that is none"):
        code_of(read_plan(plan, "plan.json"), "0" * 64, tmp_path)


def test_so_are_very_many_long_ones(tmp_path: Path) -> None:
    plan = json.loads((DEMO / "plan.json").read_text())
    files = {**plan["cases"][0]["files"], "case_dir": "c", "script": "c/x.py"}
    folders = [f"{number}/{LONG[:3000]}" for number in range(30)]
    plan["cases"] = [{**plan["cases"][0], "files": {**files, "extern_dir": each}} for each in folders]
    with pytest.raises(FlagPerfError, match="names folders of more than 65536 characters together"):
        code_of(read_plan(plan, "plan.json"), "0" * 64, tmp_path)


def test_enormous_figures_are_shown_and_times_beyond_every_clock_refused(tmp_path: Path) -> None:
    run = copied(tmp_path, rounds=2)
    for number in (1, 2):
        result = load_run(run, by_name_alone).results[number - 1].as_dict()
        result["figures"]["p_train"]["value"] = 9e99
        (run / CASE / f"round{number}" / "result.json").write_text(json.dumps(result))
    export_ais_bench(run, tmp_path / "ais", by_name_alone)
    assert "average:9e+99" in (tmp_path / "ais" / CASE.replace(":", "_") / "report.log").read_text()
    change_events(
        rank_log(run), lambda name, value: value.update(eval_time=1e90) if name == "EVALUATE" else None
    )
    with pytest.raises(FlagPerfError, match="no time that a round can take"):
        export_mlperf(run, tmp_path / "mlperf", {}, by_name_alone)
