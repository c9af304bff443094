"""What a vendor's files say that cannot be: backends, figures, options, images, configurations; each by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.conformance import engine_options
from run_benchmarks.conformance.backends import backends_trouble
from run_benchmarks.conformance.config_code import config_trouble
from run_benchmarks.conformance.figures import figures_trouble, peak_trouble, says_nothing
from run_benchmarks.conformance.folder import require_vendor
from run_benchmarks.conformance.image_files import dockerfile_trouble, unpinned
from run_benchmarks.conformance.records import CheckOutcome, CheckResult
from run_benchmarks.plan.vendor_record import Chip, Vendor


@pytest.fixture
def vendor(acme: Path) -> Vendor:
    return require_vendor(acme)


def backends(vendor: Vendor, device: str, backend: str, plugin: str = "") -> list[CheckResult]:
    names = {"pytorch": plugin} if plugin else {}
    posing = replace(vendor, device_type=device, collective_backend={"pytorch": backend}, plugin=names)
    return list(backends_trouble(posing, ["pytorch"]))


def test_backends_fit_the_device(vendor: Vendor) -> None:
    for device, backend in (("cpu", "gloo"), ("cuda", "nccl"), ("cuda", "ucc"), ("xpu", "xccl")):
        assert backends(vendor, device, backend) == []
    assert backends(vendor, "npu", "hccl", "torch_npu") == []
    wrong = (
        ("xpu", "nccl", "xccl"),
        ("cpu", "nccl", "gloo"),
        ("cuda", "xccl", "nccl"),
        ("cuda", "gloo", "nccl"),
    )
    for device, backend, right in wrong:
        (check,) = backends(vendor, device, backend)
        assert check.outcome is CheckOutcome.FAILED and f"{backend!r} is for" in check.detail
        assert right in check.remedy, (device, backend)
    (check,) = backends(vendor, "npu", "nccl", "torch_npu")
    assert "not for 'npu'" in check.detail and "plug-in" in check.remedy


def test_a_device_of_the_frameworks_own_beside_a_plug_in_of_another(vendor: Vendor) -> None:
    for backend in ("hccl", "nccl"):
        (check,) = backends(vendor, "cuda", backend, "torch_npu")
        assert check.outcome is CheckOutcome.FAILED and "torch_npu brings npu, hccl" in check.detail
        assert check.remedy.startswith("write one of npu")


def test_a_backend_by_its_makers_name(vendor: Vendor) -> None:
    (check,) = backends(vendor, "cuda", "rccl")
    assert check.outcome is CheckOutcome.FAILED and check.remedy.startswith("write 'nccl'")


def test_of_a_plug_in_that_nobody_knows_nothing_is_proven_but_capitals_fail(vendor: Vendor) -> None:
    checks = backends(vendor, "heron", "hecl", "torch_heron")
    assert [check.outcome for check in checks] == [CheckOutcome.NOT_PROVEN] * 2
    assert all("PLUGINS" in check.remedy for check in checks)
    device, _ = backends(vendor, "Heron", "hecl", "torch_heron")
    assert (device.outcome, device.remedy) == (CheckOutcome.FAILED, "write 'heron'")


def test_a_framework_that_is_none(vendor: Vendor) -> None:
    posing = replace(vendor, ragged_attention=("torch",))
    (check,) = backends_trouble(posing, [])
    assert "'torch'" in check.detail and "did you mean pytorch?" in check.remedy


RIGHT = Chip(
    name="A1",
    device_names=("Acme A1,",),
    memory_gib=96.0,
    power_w=600,
    memory_bandwidth=3.2e12,
    link_bandwidth={"host": 63e9},
    peak_flops={"bf16": 400e12, "fp32": 50e12},
    source={"": "Acme A1 data sheet, table 2"},
)


def test_figures_that_no_chip_has(vendor: Vendor) -> None:
    wrong = {
        "memory_gib of B0 is 98304 GiB": replace(RIGHT, memory_gib=98304),
        "memory_gib of B1": replace(RIGHT, memory_gib=96 * 2.0**30),
        "memory_bandwidth of B2 is 3200 bytes/s": replace(RIGHT, memory_bandwidth=3200),
        "power_w of B3": replace(RIGHT, power_w=0.6),
        "peak_flops['bf16'] of B4": replace(RIGHT, peak_flops={"bf16": 400e15}),
        "link_bandwidth['host'] of B5": replace(RIGHT, link_bandwidth={"host": 63}),
        "B6: fp32 (5e+14) is above bf16": replace(RIGHT, peak_flops={"bf16": 400e12, "fp32": 500e12}),
        "power_w of B7 has no source": replace(RIGHT, source=dict.fromkeys(
            ("memory_gib", "memory_bandwidth", "link_bandwidth", "peak_flops"), "a sheet")),
        "the figures of B8 is 'TODO'": replace(RIGHT, source={"": "TODO"}),
    }  # fmt: skip
    chips = {f"B{number}": replace(chip, name=f"B{number}") for number, chip in enumerate(wrong.values())}
    checks = list(figures_trouble(replace(vendor, chips={"A1": RIGHT, **chips})))
    assert len(checks) == len(wrong)
    for words, check in zip(wrong, checks, strict=True):
        assert words in check.detail and check.remedy


def test_the_readme_says_the_peak_of_vendor_py() -> None:
    readme = Path("README.md")
    assert list(peak_trouble(RIGHT, "| `A1` | OAM | 400 / 50 |", readme)) == []
    (check,) = peak_trouble(RIGHT, "| `A1` | OAM | 800 / 50 |", readme)
    assert "400 TFLOP/s" in check.detail


def test_places_that_nobody_has_filled_in() -> None:
    assert all(
        map(says_nothing, ("", "x", "TODO", "todo: ask", "tbd", "n/a", "???", "-", "needed", "Data sheet."))
    )
    assert not any(
        map(
            says_nothing,
            ("the chip", "no peak: it names no model", "A1 data sheet", "needed by its driver", "芯片"),
        )
    )


def test_options_have_reasons_and_capabilities_are_some(
    vendor: Vendor, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_options, "ENGINES", ())
    text = (acme / "vendor.py").read_text()
    options = (
        '{"--privileged": "x", "--cap-add=HERON": "its driver asks for it", "--cap-add SYS_PTRACE": "memory"}'
    )
    (acme / "vendor.py").write_text(f"{text}\nCONTAINER_OPTIONS = {options}\n")
    *wrong, _ = engine_options.options_trouble(require_vendor(acme))
    assert ["says nothing" in wrong[0].detail, "HERON is no capability" in wrong[1].detail] == [True] * 2
    assert len(wrong) == 2
    (acme / "vendor.py").write_text(f'{text}\nCONTAINER_OPTIONS = ["--privileged"]\n')
    listed, _ = engine_options.options_trouble(require_vendor(acme))
    assert "no reasons" in listed.detail and "vendor.py:" in listed.where


DOCKERFILE = """\
ARG BASE_IMAGE=registry.acme.example/pytorch:2.9
FROM ${BASE_IMAGE}
ENV PYTHONUNBUFFERED=1
COPY pytorch_install.sh /tmp/
"""


def in_dockerfile(folder: Path, text: str) -> list[tuple[str, str]]:
    path = folder / "Dockerfile"
    (folder / "pytorch_install.sh").write_text("")
    path.write_text(text)
    return [(check.where.removeprefix(f"{path}:"), check.detail) for check in dockerfile_trouble(path)]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (":2.9", ":nightly", "1", "not pinned: registry.acme.example/pytorch:nightly"),
        (":2.9", "@sha256:abc", "1", "@sha256:abc (its digest has 3 characters in place of 64)"),
        ("ENV", "COPY --from=busybox /bin/sh /bin/\nENV", "3", "not pinned: busybox"),
        ("ENV", "RUNN true\nENV", "3", "RUNN is no instruction"),
        ("pytorch_install.sh", "other.sh", "4", "there is no other.sh"),
        ("ENV", "ARG REPO_TOKEN\nENV", "3", "`ARG REPO_TOKEN` would put a secret"),
        ("ENV", "RUN true && \\\n pip install numpy\nENV", "3", "pip installs numpy of any version"),
    ],
)
def test_a_line_of_a_dockerfile(old: str, new: str, line: str, words: str, tmp_path: Path) -> None:
    assert in_dockerfile(tmp_path, DOCKERFILE) == []
    ((where, detail),) = in_dockerfile(tmp_path, DOCKERFILE.replace(old, new))
    assert where == line and words in detail


def test_stages_and_here_documents_are_taken_as_they_are(tmp_path: Path) -> None:
    stages = "FROM python:3.11 AS made\nFROM made\nCOPY --from=made /a /b\nCOPY --from=0 /a /b\n"
    assert in_dockerfile(tmp_path, f"{DOCKERFILE}{stages}RUN <<EOF\necho words\nEOF\n") == []


def test_packages_that_pip_installs_of_any_version() -> None:
    lines = {
        'python3 -m pip install --quiet "$@"': [],
        "pip3 install -r requirements.txt --constraint c.txt ./x.whl": [],
        "python3 -m pip install --no-deps h5py==3.16.0 numpy": ["numpy"],
        "/opt/venv/bin/pip install 'torch>=2' && pip install bar": ["torch>=2", "bar"],
        'echo "pip install torch"  # pip install torch': [],
        f"pip install torch {'(' * 2**20}": [],  # nobody's; it would take minutes
    }
    assert {line: [detail.split()[2] for detail, _ in unpinned(line)] for line in lines} == lines


def test_code_of_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "config_common.py").write_text("a = 1\n")
    path = tmp_path / "config_A1x1x8.py"
    path.write_text(
        "import math\nimport __main__\nfrom config_common import *\ntrain_batch_size = int(math.sqrt(64))\n"
    )
    assert list(config_trouble(path)) == []
    path.write_text(
        "import os\nimport torch_heron.x\ntarget = float(os.environ['T'])\nfrom os import getenv\n"
    )
    checks = list(config_trouble(path))
    outcomes = {check.where.removeprefix(f"{path}:"): check.outcome for check in checks}
    assert outcomes == {"2": CheckOutcome.NOT_PROVEN, "3": CheckOutcome.FAILED, "4": CheckOutcome.FAILED}
    assert any("torch_heron is not here" in check.detail for check in checks)
