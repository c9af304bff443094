"""The static part: every shipped vendor passes it, and each planted fault is named."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.conformance import engine_options, static
from run_benchmarks.conformance.records import CheckOutcome, CheckResult, Options
from run_benchmarks.plan.vendors import find_vendors
from tests.run_benchmarks.conformance.conftest import TRAINING, edit

OPTIONS = Options(Path(sys.executable))


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_options, "ENGINES", ())


def troubles(vendor: Path) -> Iterator[CheckResult]:
    return (check for check in static.checks(vendor, OPTIONS) if check.outcome is CheckOutcome.FAILED)


@pytest.mark.parametrize("vendor", find_vendors(TRAINING))
def test_every_shipped_vendor_passes(vendor: str) -> None:
    assert list(troubles(TRAINING / vendor)) == []


FAULTS = {
    "wrong backend": (
        "vendor.py", 'PLUGIN = {"pytorch": "torch_acme"}', "", "device and collectives",
        "COLLECTIVE_BACKEND = 'acmeccl' is none of pytorch's own (gloo, nccl, ucc, mpi, xccl), and PLUGIN names none",
    ),
    "backend that the plug-in does not bring": (
        "vendor.py", "torch_acme", "torch_npu", "device and collectives", "nor what torch_npu brings (hccl)",
    ),
    "missing chip": ("vendor.py", '    "A1": {', '    "A2": {', "configurations", "there is no such chip"),
    "no chip": ("vendor.py", "CHIPS = {", "CHIPS = {}\n_OLD = {", "names of chips", "CHIPS has no chip"),
    "peak without a source": (
        "vendor.py", '"peak_flops": {}', '"peak_flops": {"bf16": 3e14}', "figures of chips and their sources",
        "peak_flops of A1 has no source",
    ),
    "a chip's name within another's": (
        "vendor.py", "CHIPS = {",
        'CHIPS = {"A1X": {"device_names": ["Acme A1, X"], "memory_gib": None, "peak_flops": {}, "source": {}},',
        "names of chips", "'Acme A1,' of A1 is a part of 'Acme A1, X' of A1X",
    ),
    "syntax": ("vendor.py", "CHIPS = {", "CHIPS = {{", "vendor.py", "syntax error"),
    "beyond the mutable names": (
        "bert-pytorch/config/config_A1x1x8.py", "eval_batch_size = 32", "hidden_size = 64", "mutable parameters",
        "hidden_size = 64: the case does not let a vendor change it",
    ),
    "a target that is not the case's": (
        "bert-pytorch/config/config_A1x1x8.py", "eval_batch_size = 32", "target_mlm_accuracy = 0.5",
        "mutable parameters", "target_mlm_accuracy = 0.5: the case does not let a vendor change it",
    ),
    "a parameter of another type": (
        "bert-pytorch/config/config_A1x1x8.py", "eval_batch_size = 32", 'eval_batch_size = "32"', "configurations",
        "has the wrong type: it is str, not int",
    ),
    "an unpinned base": (
        "docker_image/pytorch/Dockerfile", ":2.9", ":latest", "Dockerfiles",
        "not pinned: registry.acme.example/pytorch:latest",
    ),
    "a base without a tag": ("docker_image/pytorch/Dockerfile", ":2.9", "", "Dockerfiles", "is not pinned"),
    "a base for good": (
        "docker_image/pytorch/Dockerfile", "FROM ${BASE_IMAGE}", "FROM registry.acme.example:5000/pytorch:2.9",
        "Dockerfiles", "cannot be replaced",
    ),
    "no output of a killed rank": (
        "docker_image/pytorch/Dockerfile", "PYTHONUNBUFFERED=1", "A=1", "Dockerfiles", "last lines",
    ),
    "a script that goes on": (
        "docker_image/pytorch/pytorch_install.sh", "set -eu", "", "shell scripts", "it goes on after an error",
    ),
    "a script that no shell parses": (
        "docker_image/pytorch/pytorch_install.sh", "set -eu", "set -eu\nif true", "shell scripts", "end of file",
    ),
    "a row of another global batch": (
        "bert-pytorch/README.md", "= 768", "= 769", "READMEs", "the global batch of config_A1x1x8.py is 768",
    ),
    "a configuration without a row": (
        "gemm-pytorch/README.md", "(config/config_A1x1x1.py)", "", "READMEs", "it has no row of config_A1x1x1.py",
    ),
    "a chip without a row": ("README.md", "`A1`", "A1", "READMEs", "does not tell of the chip `A1`"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault: str, acme: Path, no_engine: None) -> None:
    file, old, new, name, words = FAULTS[fault]
    edit(acme / file, old, new)
    named = [check for check in troubles(acme) if words in check.detail]
    assert [check.name for check in named][:1] == [name]
    assert named[0].where.startswith(str(acme)) and named[0].remedy


def test_what_a_vendor_may_not_change_is_named_with_its_line(acme: Path, no_engine: None) -> None:
    path = acme / "bert-pytorch/config/config_A1x1x8.py"
    path.write_text(f"{path.read_text()}target_mlm_accuracy = 0.5\n")
    (check,) = (check for check in troubles(acme) if check.name == "mutable parameters")
    assert check.where == f"{path}:{len(path.read_text().splitlines())}"


def test_files_under_other_names_and_a_readme_that_is_missing(acme: Path, no_engine: None) -> None:
    (acme / "README.md").unlink()
    (acme / "acme_monitor.py").rename(acme / "monitor.py")
    (acme / "__init__.py").touch()
    seen = [(check.where, check.detail) for check in troubles(acme) if check.remedy]
    assert (str(acme / "README.md"), "there is no such file") in seen
    assert any(where == str(acme / "monitor.py") and "nothing reads it" in detail for where, detail in seen)
    assert any(where == str(acme / "__init__.py") and "hides" in detail for where, detail in seen)
    assert len(seen) == 3
    images = acme / "docker_image"
    (images / "pytorch").rename(images / "pytorch-2.9")
    remedies = {check.remedy for check in troubles(acme) if "no Dockerfile in" in check.detail}
    assert remedies == {f"rename {images / 'pytorch-2.9'} pytorch or pytorch_2.9"}


@pytest.mark.parametrize("option", ["--devise=/dev/acme{n}", "--mount type=bnd,source=/,target=/acme"])
def test_an_option_that_the_engine_refuses(option: str, acme: Path) -> None:
    if not any(map(shutil.which, engine_options.ENGINES)):
        pytest.skip("there is no container engine here")
    edit(acme / "vendor.py", '"--device=/dev/acme{n}":', f'"--cap-add=SYS_PTRACE": "memory", "{option}":')
    (check,) = troubles(acme)
    assert check.name == "container options" and f"refuses {option}: " in check.detail
    assert f"{acme}/vendor.py:" in check.where


# Without its server docker's client refuses options that it would take (`--device=/dev/x`: unknown server OS).
NO_SERVER = """\
[ "$1" = version ] && echo "Cannot connect to the Docker daemon" >&2 || echo "docker: unknown server OS: " >&2
exit 1
"""


@pytest.mark.parametrize(("script", "words"), [(NO_SERVER, "does not answer"), (None, "neither of")])
def test_without_an_engine_nothing_is_proven(
    script: str | None, words: str, acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine whose server has ended is a FAKE."""
    engine = tmp_path / "docker"
    if script:
        engine.write_text(f"#!/bin/sh\n{script}\n")
        engine.chmod(0o755)
    monkeypatch.setattr(engine_options, "ENGINES", (str(engine),))
    checks = {check.name: check for check in static.checks(acme, OPTIONS)}
    assert checks["container options"].outcome is CheckOutcome.NOT_PROVEN
    assert words in checks["container options"].detail


def test_a_new_vendor_passes_and_every_place_to_be_filled_in_is_named(acme: Path, no_engine: None) -> None:
    checks = list(static.checks(acme, OPTIONS))
    assert not [check for check in checks if check.outcome is CheckOutcome.FAILED]
    places = [check.where for check in checks if "to be filled in" in check.detail]
    lines = (
        f"{path}:{number}"
        for path in acme.rglob("*")
        if path.is_file()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if static.MARK in line
    )
    assert sorted(places) == sorted(lines)
    assert len({place.rpartition(":")[0] for place in places}) == 6  # files to be edited
