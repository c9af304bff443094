"""`run.py vendor list|new|check`, from the command line to what it writes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from run_benchmarks.conformance import forms, kit
from run_benchmarks.conformance.new import make_vendor
from run_benchmarks.conformance.records import CheckOutcome, CheckResult, ConformanceReport, read_report
from run_benchmarks.verbs import main, options, vendor
from tests.run_benchmarks.conformance.conftest import TRAINING, edit
from utils.errors import FlagPerfError


def test_a_check_writes_its_report_and_says_what_failed_first(
    acme: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "TRAINING_DIR", acme.parent)
    arguments = ["vendor", "check", "acme", "--part", "monitor", "--output", str(tmp_path / "out")]
    assert main(arguments) == 0
    (acme / "recordings").mkdir()
    (acme / "recordings" / "list.txt").write_text("Acme A1, 65536 MiB\n")
    assert main(arguments) == 1  # over its own earlier report
    shown = capsys.readouterr().out.rpartition("written to")[0].rpartition("outcome")[2]
    assert shown.index("FAILED") < shown.index("NOT_PROVEN") < shown.index("PASSED")
    assert "acme/recordings/list.txt: nothing says" in shown and "-> write list.json" in shown
    report = read_report(tmp_path / "out" / "conformance.json")
    assert report and [check.where for check in report.of(CheckOutcome.FAILED)] == [
        "acme/recordings/list.txt"
    ]
    assert (report.vendor, report.hardware) == ("acme", ())
    page = (tmp_path / "out" / "conformance.md").read_text()
    assert "nothing here was seen on a chip" in page and "| FAILED | monitor |" in page


def test_a_python_is_named_by_its_path_from_here_or_by_a_name_on_the_path(
    acme: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options, "TRAINING_DIR", acme.parent)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for path in (tmp_path / "bin" / "python", tmp_path / "planted-python"):
        path.symlink_to(sys.executable)
    check = ["vendor", "check", "acme", "--part", "monitor", "--python"]
    assert main([*check, "bin/python"]) == 0
    assert main([*check, "planted-python"]) == 2
    assert "there is no planted-python" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["conformance.json", "conformance.md"])
def test_nothing_of_the_users_is_written_over(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("my own words")
    assert main(["vendor", "check", "cpu", "--part", "monitor", "--output", str(tmp_path)]) == 2
    assert [path.read_text() for path in tmp_path.iterdir()] == ["my own words"]
    assert "name another folder with --output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "nvidai"], "did you mean nvidia?"),
        (["check", "result"], "there is no such vendor"),
        (["check", "cpu", "--python", "/nonexistent"], "--python /nonexistent: there is no /nonexistent"),
        (["check", "cpu", "--python", "/bin/echo"], "--python /bin/echo: it is no Python"),
        (["check", "cpu", "--output", "/proc/x"], "no report can be written there"),
        (["check", "cpu", "--output", "/dev/null"], "no report can be written there"),
        (["new", "nvidia"], "is there already"),
        (["new", "Acme/x"], "cannot be a vendor's name"),
        (["new", "utils"], "cannot be a vendor's name"),
        (["new", "acme", "--chip", "A 1"], "cannot be a chip's name"),
        (["new", "acme", "--tool", "a b"], "cannot be a tool's name"),
    ],
)
def test_what_cannot_be_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vendor", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (TRAINING / "acme").exists()


def test_the_verb_offers_the_parts_of_the_kit() -> None:
    assert tuple(kit.PARTS) == vendor.PARTS


def test_of_a_hostile_folder_nothing_is_read_or_copied(
    acme: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe would be waited for, a file of a terabyte fills the memory, two links in circles a disk."""
    monkeypatch.setattr(options, "TRAINING_DIR", acme.parent)
    configs, images = acme / "bert-pytorch" / "config", acme / "docker_image" / "pytorch"
    for name in "ab":
        (configs / name).symlink_to(".")
    (images / "Dockerfile").unlink()
    os.mkfifo(images / "Dockerfile")
    for path in (acme / "README.md", acme / "recordings" / "list.txt", images / "driver.run"):
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.truncate(2**40 if path.suffix != ".run" else 2**25)  # an installer is as large as it is
    assert main(["vendor", "check", "acme", "--output", str(tmp_path / "out")]) == 1
    report = read_report(tmp_path / "out" / "conformance.json")
    assert report
    assert {(check.outcome, check.where) for check in report.checks} == {
        (CheckOutcome.FAILED, f"acme/{path.relative_to(acme)}")
        for path in (configs / "a", configs / "b", images / "Dockerfile", acme / "README.md",
                     acme / "recordings" / "list.txt")
    }  # fmt: skip
    assert main(["vendor", "list"]) == 0
    assert "acme" in capsys.readouterr().out


def test_a_folder_without_vendor_py_is_told_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "noven/docker_image/pytorch"  # as public FlagPerf's vendors are
    image.mkdir(parents=True)
    (image / "Dockerfile").touch()
    monkeypatch.setattr(options, "TRAINING_DIR", tmp_path)
    assert main(["vendor", "check", "noven"]) == 2
    assert f"{tmp_path}/noven: has no vendor.py" in capsys.readouterr().err


def test_a_new_vendor_has_its_own_names_everywhere(training: Path) -> None:
    files = make_vendor("kestrel", "K7", training, "ktl-info")
    names = [path.relative_to(training / "kestrel").as_posix() for path in files]
    assert "kestrel_monitor.py" in names and "bert-pytorch/config/config_K7x1x8.py" in names
    text = "".join(path.read_text() for path in files)
    assert "acme" not in text.lower() and "A1" not in text and "KESTREL_VISIBLE_DEVICES" in text
    assert "kestrel-smi" not in text and '["ktl-info", "--list"]' in text and '"kestrelccl"' in text


def test_the_list_claims_what_a_report_on_hardware_and_results_say_and_nothing_else(acme: Path) -> None:
    def proven() -> str:
        return forms.vendors_text([acme], None)

    assert "A1" in proven() and forms.NOTHING in proven()
    seen = CheckResult("static", "vendor.py", CheckOutcome.PASSED)
    report = ConformanceReport(vendor="acme", harness="abc", date="2026-11-22", checks=(seen,))
    (acme / "conformance.json").write_text(report.as_json())
    assert forms.NOTHING in proven()  # it met no chip
    on_chips = ConformanceReport(
        vendor="acme", harness="abc", date="2026-11-22", checks=(seen,), hardware=("8 x A1",)
    )
    (acme / "conformance.json").write_text(on_chips.as_json())
    assert "8 x A1: acme: 0 FAILED, 0 NOT_PROVEN, 1 PASSED" in proven()
    edit(acme / "bert-pytorch" / "README.md", "Not yet measured.", "| nodes | p_train |")
    assert "results: acme/bert-pytorch/README.md" in proven()


def test_a_report_of_a_strangers_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "conformance.json"
    assert read_report(path) is None
    for text in ("[]", "{", '{"vendor": 1}', '{"vendor": "a", "harness": "", "date": "", "checks": [{}]}'):
        path.write_text(text)
        with pytest.raises(FlagPerfError):
            read_report(path)
