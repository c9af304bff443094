"""What holds of every vendor's folder: its chips, configurations, image, install script and README."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from utils.config_files import load_constants, parts_of_config
from utils.parameters import TARGET

TRAINING = Path(__file__).resolve().parents[2] / "training"
VENDORS = sorted(path.parent for path in TRAINING.glob("*/vendor.py") if path.parent.name != "cpu")
CONFIGS = [path for vendor in VENDORS for path in sorted(vendor.glob("*-*/config/config_*.py"))]
IMAGES = [path for vendor in VENDORS for path in sorted(vendor.glob("docker_image/*/Dockerfile"))]
INSTALLS = [path for vendor in VENDORS for path in sorted(vendor.glob("docker_image/*/*_install.sh"))]
FIGURES = {"peak_flops", "memory_bandwidth", "link_bandwidth", "memory_gib", "power_w"}

every_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=lambda path: path.name)
every_config = pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda path: f"{path.parents[2].name}-{path.stem}"
)


def base_of(config: Path) -> dict[str, Any]:
    return load_constants(case_of(config) / "config" / "_base.py")


def case_of(config: Path) -> Path:
    return TRAINING / "benchmarks" / Path(*config.parents[1].name.split("-"))


@every_vendor
def test_no_chips_name_is_in_anothers(vendor: Path) -> None:
    """Else a device would be taken for a chip with another peak."""
    names = [
        (chip, name) for chip, about in load_constants(vendor / "vendor.py")["CHIPS"].items()
        for name in about["device_names"]
    ]  # fmt: skip
    assert names
    for chip, name in names:
        assert not [other for other, longer in names if other != chip and name in longer], name


@every_vendor
def test_every_figure_of_a_chip_has_a_source(vendor: Path) -> None:
    for chip, about in load_constants(vendor / "vendor.py")["CHIPS"].items():
        source = about["source"] if isinstance(about["source"], dict) else {"": about["source"]}
        said = {name for name in FIGURES & set(about) if about[name] not in (None, {})}
        assert "" in source or said <= set(source), f"{chip}: {said - set(source)}"
        assert all(source.values()), chip


@every_config
def test_a_configuration_sets_what_a_vendor_may_with_values_of_the_cases_type(config: Path) -> None:
    base, own = base_of(config), load_constants(config)
    mutable = load_constants(case_of(config) / "config" / "mutable_params.py")["mutable_params"]
    assert set(own) <= set(base) & set(mutable)
    assert {name: type(value) for name, value in own.items()} == {name: type(base[name]) for name in own}


@every_config
def test_a_configurations_name_says_a_chip_of_the_vendors(config: Path) -> None:
    parts = parts_of_config(config.stem)
    assert parts and min(parts[1:]) >= 1
    assert parts[0] in load_constants(config.parents[2] / "vendor.py")["CHIPS"]


@every_config
def test_a_configuration_stands_in_its_readme_with_its_global_batch(config: Path) -> None:
    readme = (config.parents[1] / "README.md").read_text("utf-8")
    assert f"(config/{config.name})" in readme
    if any(name.startswith(TARGET) for name in base_of(config)):
        values = {**base_of(config), **load_constants(config)}
        parts = parts_of_config(config.stem)
        assert parts
        batch = values["train_batch_size"] * values["gradient_accumulation_steps"] * parts[1] * parts[2]
        assert re.search(rf"\(config/{re.escape(config.name)}\) \| [\dx ]+= {batch} \|", readme), batch


@pytest.mark.parametrize("dockerfile", IMAGES, ids=lambda path: path.parents[2].name)
def test_an_image_is_built_on_a_base_that_can_be_replaced_and_is_pinned(dockerfile: Path) -> None:
    text = dockerfile.read_text("utf-8")
    base = re.search(r"^ARG BASE_IMAGE=(\S+)$", text, re.MULTILINE)
    assert base and re.search(r"[\w.-]+(:[\w.-]+|@sha256:[0-9a-f]{64})$", base[1])
    assert not base[1].endswith(":latest") or "vault.habana.ai" in base[1]
    assert re.search(r"^FROM \$\{BASE_IMAGE\}$", text, re.MULTILINE)
    assert "PYTHONUNBUFFERED=1" in text


@pytest.mark.parametrize("script", INSTALLS, ids=lambda path: path.parents[2].name)
def test_an_install_script_is_a_posix_shells_and_ends_at_the_first_error(script: Path) -> None:
    lines = script.read_text("utf-8").splitlines()
    assert lines[0] == "#!/bin/sh"
    assert "set -eu" in lines
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0


@every_vendor
def test_the_readme_says_what_was_not_measured(vendor: Path) -> None:
    readme = (vendor / "README.md").read_text("utf-8")
    assert re.search(r"not (yet )?measured", readme, re.IGNORECASE)
    for case in sorted({path.parents[1].name for path in CONFIGS if path.parents[2] == vendor}):
        assert f"({case}/README.md)" in readme, case


@every_vendor
def test_the_folder_is_no_package_that_would_hide_pips_own(vendor: Path) -> None:
    assert not (vendor / "__init__.py").exists()
