"""`run.py import`: what comes from a checkout of public FlagPerf, under which name, and that all of it goes again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pytest

from run_benchmarks import verbs
from run_benchmarks.imports import checkout as checkout_of
from run_benchmarks.imports import laying
from run_benchmarks.plan_notes import notes_of
from run_benchmarks.stages import tree_files
from run_benchmarks.verbs import options
from tests.run_benchmarks.imports.checkout import FILES, make_checkout
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from utils.errors import FlagPerfError


@dataclass
class Moving:
    """A tree, a checkout that is laid beside what it has, and what the verb prints."""

    tree: Tree
    checkout: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str) -> tuple[int, str]:
        """The exit code, and all that was printed."""
        code = verbs.main(["import", *words])
        shown = self.capsys.readouterr()
        return code, shown.out + shown.err

    def lay(self, *words: str) -> str:
        """Import the checkout; the output."""
        code, shown = self.run(str(self.checkout), *words)
        assert code == 0, shown
        return shown

    def files(self) -> Mapping[str, str]:
        """What the tree holds."""
        paths = [path for path in self.tree.training.rglob("*") if path.is_file()]
        return {path.relative_to(self.tree.training).as_posix(): path.read_text() for path in paths}


@pytest.fixture
def moving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Moving:
    tree = make_tree(tmp_path)
    monkeypatch.setattr(options, "TRAINING_DIR", tree.training)
    return Moving(tree, make_checkout(tmp_path / "FlagPerf"), capsys)


def row(shown: str, *words: str) -> str:
    """The line of the table that holds these words."""
    (line,) = [line for line in shown.splitlines() if all(word in line.split() for word in words)]
    return line


def test_a_checkout_is_laid_beside_what_is_here_and_can_be_planned(moving: Moving) -> None:
    before = moving.files()
    shown = moving.lay()
    after = moving.files()
    assert {name: after[name] for name in before} == before, "nothing that was here was touched"
    new = after.keys() - before.keys() - {"imported.json"}
    assert {
        "benchmarks/toy_2022/README.md",
        "benchmarks/toy_2022/pytorch/run_pretraining.py",
        "benchmarks/toy_2022/pytorch/driver/event.py",
        "benchmarks/toy_small/pytorch/driver/__init__.py",  # what a link leads to comes as a file
        "benchmarks/llama3_8B/megatron/run_pretraining.py",
        "acme/toy_2022-pytorch/csrc/setup.py",
        "acme/docker_image/pytorch_2022/pytorch_install.sh",
        "acme/docker_image/megatron_core060/Dockerfile",
        "other/docker_image/pytorch_2.0/Dockerfile",
    } <= new
    assert all(after[name] in FILES.values() for name in new), "their files come as they are"
    assert not any("monitor" in name or "mindspore" in name or "container" in name for name in new)
    assert "toy_2022:pytorch_2022" in row(shown, "acme", "toy:pytorch")
    assert "toy_2022:pytorch_2.0" in row(shown, "other", "toy:pytorch")
    assert "not" in row(shown, "acme", "resnet50:mindspore").split()
    assert "acme/acme_monitor.py stays behind: it makes itself a daemon" in shown
    assert "other has no vendor.py here" in shown
    (note,) = (note for note in notes_of(moving.tree.load()) if "imported" in note)
    assert (
        "toy:pytorch:X1" in note
        and "takes benchmarks/toy/pytorch and acme/docker_image/pytorch, and not" in note
    )
    assert note.endswith("begins with toy_2022:pytorch_2022:")
    moving.tree.configure(test_conf=TEST_CONF.replace("toy:pytorch:X1", "toy_2022:pytorch:X1"))
    (note,) = (note for note in notes_of(moving.tree.load()) if "imported" in note)
    assert "toy_2022:pytorch_2022:" in note and "benchmarks" not in note
    moving.tree.configure(test_conf=TEST_CONF.replace("toy:pytorch:X1", "toy_2022:pytorch_2022:X1"))
    plan = moving.tree.load()
    assert not any("imported" in note for note in notes_of(plan))
    (case,) = plan.cases
    assert case.files.script == "benchmarks/toy_2022/pytorch/run_pretraining.py"
    assert case.files.install_script == "acme/docker_image/pytorch_2022/pytorch_install.sh"
    assert case.files.extension_dir == "acme/toy_2022-pytorch/csrc"


def test_what_cannot_run_stays_away_with_the_reason(moving: Moving) -> None:
    outside = moving.checkout / "training/acme/llama3_8B-megatron/data"
    outside.symlink_to("/etc")
    shown = moving.lay()
    for name, why in {
        "aquila2_7B_container:in_container": "started by hand in containers",
        "resnet50:mindspore": "mindspore is no framework that is started here",
        "detr:pytorch": "benchmarks/detr/pytorch has no run_pretraining.py",
        "llama3_8B:megatron": "acme/llama3_8B-megatron/data is a link to what hosts do not get",
    }.items():
        assert why in row(shown, "acme", name)


def test_undo_takes_away_exactly_what_came_and_keeps_what_was_changed(moving: Moving) -> None:
    before = moving.files()
    moving.lay()
    changed = moving.tree.write("benchmarks/llama3_8B/megatron/run_pretraining.py", "import mine\n")
    moving.tree.write("acme/toy_2022-pytorch/config/config_X1x1x4.py", "")
    code, shown = moving.run("--undo")
    assert code == 0
    assert f"kept, as it was changed since: {changed}" in shown
    mine = {
        "benchmarks/llama3_8B/megatron/run_pretraining.py",
        "acme/toy_2022-pytorch/config/config_X1x1x4.py",
    }
    assert moving.files().keys() == {*before, *mine}
    assert not (moving.tree.training / "other").exists(), "folders that were made for it go too"
    assert moving.run("--undo") == (0, "0 files were taken away\n")


def test_an_import_again_lays_down_only_what_is_new(moving: Moving) -> None:
    assert "other" not in moving.lay("--vendor", "acme", "--cases", "toy:pytorch_1.8:X1:1:2:1").split()
    first = moving.files()
    assert not any("llama" in name for name in first)
    shown = moving.lay()
    assert first.keys() < moving.files().keys()
    assert "toy_2022:pytorch" in row(shown, "acme", "toy:pytorch"), "a name that came stays"
    assert "\n- 0 of " in moving.lay()


def test_nothing_is_laid_down_where_a_file_would_be_overwritten(moving: Moving) -> None:
    moving.lay("--cases", "llama3_8B")
    moving.tree.write("benchmarks/llama3_8B/megatron/run_pretraining.py", "import mine\n")
    before = moving.files()
    code, shown = moving.run(str(moving.checkout))
    assert code == 2
    assert "benchmarks/llama3_8B/megatron/run_pretraining.py: lies here already" in shown
    assert moving.files() == before


def test_show_copies_nothing(moving: Moving) -> None:
    before = moving.files()
    assert "toy_2022:pytorch" in moving.lay("--show")
    assert moving.files() == before


def test_an_image_folder_that_hosts_would_not_get_is_named(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laying, "LARGEST_TREE", 13)
    line = row(moving.lay("--cases", "llama3_8B"), "acme", "docker_image/megatron_core060")
    assert "more than goes to hosts: build an image with what it installs by hand" in line
    assert not (moving.tree.training / "acme/docker_image/megatron_core060").exists()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ((), "no checkout is given"),
        (("{checkout}", "--undo"), "leave PATH out"),
        (("{here}",), "is no checkout of FlagPerf"),
        (("{checkout}", "--vendor", "acne"), "did you mean acme?"),
        (("{checkout}", "--cases", "tay:pytorch"), "did you mean toy?"),
        (
            ("{checkout}", "--vendor", "other", "--cases", "llama3_8B"),
            "has llama3_8B, but no configuration of it by other\n    -> it is acme's; there is: toy",
        ),
        (("{checkout}", "--cases", "detr"), "nothing of it can run here: benchmarks/detr/pytorch has no"),
    ],
)
def test_what_is_no_import(moving: Moving, words: tuple[str, ...], shown: str) -> None:
    places = {"here": moving.checkout.parent / "config", "checkout": moving.checkout}
    code, text = moving.run(*(word.format(**places) for word in words))
    assert code == 2
    assert shown in text


@pytest.mark.parametrize("name", ["../config/test_conf.py", "/etc/passwd", "outside/x"])
def test_a_record_that_leads_elsewhere_is_refused(moving: Moving, name: str) -> None:
    (moving.tree.training / "outside").symlink_to(moving.tree.config)
    record = {"schema": 2, "files": {name: "0"}}
    (moving.tree.training / "imported.json").write_text(json.dumps(record))
    code, shown = moving.run("--undo")
    assert code == 2
    assert "names what is not below" in shown


def test_a_case_that_hosts_would_not_get_is_named_and_not_read(moving: Moving) -> None:
    script = moving.checkout / "training/benchmarks/toy/pytorch/run_pretraining.py"
    with script.open("ab") as file:
        file.truncate(2**43)  # sparse
    shown = moving.lay("--show")
    assert "8388608 MiB, more than goes to hosts" in row(shown, "acme", "toy:pytorch")


def test_a_file_that_grows_while_it_is_copied_fills_no_disk(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is only copied: it is opened once, and was looked at before."""
    before, whole, name = moving.files(), checkout_of.opened, "config_X1x1x8.py"

    @contextmanager
    def growing(path: Path, *given: Any) -> Iterator[BinaryIO]:
        with whole(path, *given) as content:
            if path.name == name:
                os.truncate(path, 3 * laying.BLOCK)
            yield content

    monkeypatch.setattr(checkout_of, "opened", growing)
    monkeypatch.setattr(laying, "LARGEST_TREE", laying.BLOCK)
    code, shown = moving.run(str(moving.checkout), "--cases", "llama3_8B")
    assert code == 2 and f"{name}: with it there are more than 1 MiB, which go to no host" in shown
    assert "import less of it" in shown
    assert moving.files() == before


def test_what_is_copied_has_one_bound_for_all_of_it(moving: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    before, sizes = moving.files(), [len(text) for text in FILES.values()]
    monkeypatch.setattr(laying, "LARGEST_TREE", max(sizes) + 1)
    code, shown = moving.run(str(moving.checkout))
    assert code == 2 and "which go to no host" in shown
    assert moving.files() == before


def test_of_a_file_that_could_not_be_copied_whole_nothing_stays(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, pieces = moving.files(), laying._blocks

    def fill(content: BinaryIO, room: int) -> Iterator[bytes]:
        yield from pieces(content, room)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(laying, "_blocks", fill)
    code, shown = moving.run(str(moving.checkout))
    assert code == 2 and "No space left on device" in shown and "--undo" in shown
    monkeypatch.undo()
    monkeypatch.setattr(options, "TRAINING_DIR", moving.tree.training)
    code, shown = moving.run("--undo")
    assert code == 0 and "kept" not in shown
    assert moving.files() == before


def test_no_name_of_a_checkout_forges_a_line(moving: Moving) -> None:
    vendor = moving.checkout / "training" / "ev\n- all is well"
    shutil.copytree(moving.checkout / "training" / "acme", vendor)
    assert "\n- all is well" not in moving.lay("--show")


def _replace(path: Path, target: Path) -> None:
    """What the checkout's owner does while it is imported."""
    path.rename(path.with_name(f"{path.name}.as_it_was"))
    path.symlink_to(target)


@pytest.mark.parametrize(
    "replaced", ["benchmarks/llama3_8B/megatron/run_pretraining.py", "benchmarks/llama3_8B"]
)
@pytest.mark.parametrize("after", [(laying, "read_imports"), (checkout_of, "opened")])
def test_of_a_checkout_that_is_changed_meanwhile_no_link_is_followed(
    after: tuple[ModuleType, str], replaced: str, moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaced: when its files have been listed, and when the place of one of them has been looked at."""
    before, secret = moving.files(), moving.checkout.parent / "private"
    for path in ("run_pretraining.py", "megatron/run_pretraining.py"):
        (secret / path).parent.mkdir(parents=True, exist_ok=True)
        (secret / path).write_text("for root alone\n")
    target = secret / "run_pretraining.py" if replaced.endswith(".py") else secret
    whole, waiting = getattr(*after), [moving.checkout / "training" / replaced]

    def with_a_link(*given: Any, **options: Any) -> Any:
        if waiting and (after[1] != "opened" or given[0].is_relative_to(waiting[0])):
            _replace(waiting.pop(), target)
        return whole(*given, **options)

    monkeypatch.setattr(*after, with_a_link)
    code, shown = moving.run(str(moving.checkout), "--cases", "llama3_8B")
    assert code == 2 and not waiting
    assert "leads out of the checkout" in shown or "is not followed" in shown
    assert moving.files() == before, "nothing was laid down, and nothing is left of what was copied"


def test_what_is_copied_is_what_the_record_has_the_checksum_of(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is written to while the import goes on comes as it was read, once, and goes again by --undo."""
    before, put = moving.files(), laying.write_imports
    script = moving.checkout / "training/benchmarks/llama3_8B/megatron/run_pretraining.py"

    def write_meanwhile(*given: Any) -> None:
        script.write_text("another\n")
        put(*given)

    monkeypatch.setattr(laying, "write_imports", write_meanwhile)
    moving.lay("--cases", "llama3_8B")
    assert moving.files()["benchmarks/llama3_8B/megatron/run_pretraining.py"] == "import torch\n"
    code, shown = moving.run("--undo")
    assert code == 0 and "kept" not in shown and moving.files() == before


def test_a_checkout_of_too_many_files_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_files, "MOST_PATHS", 3)
    with pytest.raises(FlagPerfError, match="more than 3 files"):
        checkout_of.Checkout(make_checkout(tmp_path))


def test_a_checkout_of_files_that_lie_very_deep_is_none(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    folder = checkout.joinpath("training/benchmarks", *["d"] * 63)
    folder.mkdir(parents=True)
    (folder / "x.py").touch()
    assert checkout_of.Checkout(checkout).below("benchmarks/d")
    (folder / "d").mkdir()
    (folder / "d/x.py").touch()
    with pytest.raises(FlagPerfError, match="deeper than 64 folders"):
        checkout_of.Checkout(checkout)


def test_what_no_host_could_get_stays_away_and_all_else_comes(moving: Moving) -> None:
    """A name that is not UTF-8 has no place in the record either: --undo would not find it again."""
    before, training = moving.files(), moving.checkout / "training"
    odd = os.fsdecode(b"caf\xe9")
    shutil.copytree(training / "other", training / odd)
    shutil.copytree(training / "acme/docker_image/pytorch", training / f"acme/docker_image/pytorch_{odd}")
    (training / "other/docker_image/pytorch_2.0/passwd").symlink_to("/etc/passwd")
    (training / "benchmarks/llama3_8B/README.md").symlink_to("/etc/passwd")
    shown = moving.lay()
    of_vendor = row(shown, "caf\N{REPLACEMENT CHARACTER}", "toy:pytorch")
    assert " not " in of_vendor and "caf\\xe9 its name is not UTF-8" in of_vendor
    of_image = row(shown, "acme", "docker_image/pytorch_caf\N{REPLACEMENT CHARACTER}")
    assert "not UTF-8" in of_image
    assert "passwd is a link" in row(shown, "other", "docker_image/pytorch_2.0")
    assert "README.md is a link" in row(shown, "acme", "llama3_8B:megatron")
    assert "toy_2022:pytorch_2022" in row(shown, "acme", "toy:pytorch")
    assert not [name for name in moving.files() if "caf" in name or "passwd" in name]
    code, _ = moving.run("--undo")
    assert code == 0 and moving.files() == before


def test_what_vendors_share_is_looked_at_once(moving: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a case, and a vendor's images: else the work would grow with the product of two numbers."""
    training, looked = moving.checkout / "training", list[str]()
    for number in range(20):
        shutil.copytree(training / "other/toy-pytorch", training / f"vendor{number}/toy-pytorch")
        shutil.copytree(
            training / "acme/docker_image/pytorch", training / f"acme/docker_image/pytorch_{number}"
        )
        shutil.copytree(training / "benchmarks/toy", training / f"benchmarks/toy{number}")
        shutil.copytree(training / "acme/toy-pytorch", training / f"acme/toy{number}-pytorch")
    for module, name in ((checkout_of, "opened"), (laying._Plan, "_free")):
        whole = getattr(module, name)

        def counted(*given: Any, whole: Any = whole, **options: Any) -> Any:
            looked.append(" ".join(map(str, given[-3:])))
            return whole(*given, **options)

        monkeypatch.setattr(module, name, counted)
    shown = moving.lay("--show")
    assert row(shown, "vendor19", "toy:pytorch") and "pytorch_19" not in row(shown, "acme", "toy19:pytorch")
    scripts = sum("benchmarks/toy/pytorch/run_pretraining.py" in each for each in looked)
    assert scripts == 2, "by its own name, and by that of the link toy_small"
    assert sum("pytorch_19" in each for each in looked) == 2, "for all cases, and where it is laid"
    assert " and 13 more" in shown


def test_more_files_than_go_to_hosts_are_not_laid_down(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout's driver comes with each case that imports it."""
    before = moving.files()
    monkeypatch.setattr(laying, "MOST_PATHS", 10)
    code, shown = moving.run(str(moving.checkout))
    assert code == 2 and "more than 10 files would be laid down" in shown and "--vendor" in shown
    assert moving.files() == before


def test_files_are_those_of_a_folder_and_of_no_other_that_begins_like_it() -> None:
    names = sorted(["a/b-c/x", "a/b/x", "a/b/y/z", "a/b", "a/b0/x", "a/ba"])
    assert checkout_of._names_in(names, "a/b") == ["a/b/x", "a/b/y/z", "a/b"]
    assert checkout_of._names_in(names, "a/c") == []
