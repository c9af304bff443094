"""A secret of a vendor's folder stands in nothing that `vendor check` starts, shows or writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.conformance import engine_options
from run_benchmarks.verbs import main, options
from tests.run_benchmarks.conformance.conftest import edit

PART = "zqSecret77"
VENDOR, CONFIG = "vendor.py", "bert-pytorch/config/config_A1x1x8.py"
SCRIPT = "bert-pytorch/config/environment_variables.sh"
OPTION = '"--device=/dev/acme{n}": "'
# The file, what stands there, what is to, and words of what is said of it.
FAULTS = {
    "a refused option, and a variable whose reason says nothing": (
        VENDOR, OPTION, f'"--env=LICENSE_KEY=Sup3r{PART}": "needed", "-e Z_TOKEN={PART}": "", "--devise=/x": "',
        "gives no reason for -e Z_TOKEN=***",
    ),
    "a variable before an option that the engine refuses": (
        VENDOR, OPTION, f'"--env=LICENSE_KEY=Sup3r{PART}": "its licence", "--devise=/x": "', "refuses --devise=/x",
    ),
    "a variable whose reason says nothing": (
        VENDOR, OPTION, f'"--env=LICENSE_KEY=Sup3r{PART}": "needed", "--device=/x": "',
        "the reason of --env=LICENSE_KEY=*** is 'needed'",
    ),
    "an option that is no variable": (
        VENDOR, OPTION, f'"--label=api_token={PART}": "its label", "--devise=/x": "',
        "--label=api_token=*** holds a secret that every user of a host would see",
    ),
    "a line that bash cannot parse": (
        SCRIPT, "", f"export DB_PASSWORD=Sup3r({PART}\n", "cannot parse it: syntax error near unexpected token `('",
    ),
    "a word that bash cannot parse": (SCRIPT, "", f"DB_PASSWORD=Sup3r\nfor {PART} {PART}\n", "unexpected token"),
    "the value alone": (
        SCRIPT, "", f"export DB_PASSWORD=Sup3r{PART}\npip install Sup3r{PART}\n", "pip installs *** of any version",
    ),
    "what a case does not let a vendor change": (
        CONFIG, "eval_batch_size = 32", f"hub_token = 'Sup3r{PART}'", "hub_token = '***'",
    ),
    "a parameter of another type, longer than what is shown of it": (
        CONFIG, "eval_batch_size = 32", f"hub_token = {[' '.join(20 * [PART])]}", "wrong type: it is list, not str",
    ),
}  # fmt: skip


@pytest.fixture
def hub_token(acme: Path) -> Iterator[None]:
    """The case has a parameter with a secret's name."""
    base = acme.parent / "benchmarks/bert/pytorch/config/_base.py"
    text = base.read_text()
    base.write_text(f'{text}\nhub_token = ""\n')
    yield
    base.write_text(text)


@pytest.mark.usefixtures("hub_token")
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_shows_it(
    fault: str,
    acme: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The engine is the one that is here, behind a script that notes with what it is asked."""
    engine = next(filter(None, map(shutil.which, engine_options.ENGINES)), "")
    if not engine and "engine" in fault:
        pytest.skip("there is no container engine here")
    asked, asking = tmp_path / "asked", tmp_path / "docker"
    asking.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {engine or "false"} "$@"\n')
    asking.chmod(0o755)
    monkeypatch.setattr(engine_options, "ENGINES", (str(asking),))
    monkeypatch.setattr(options, "TRAINING_DIR", acme.parent)
    file, old, new, words = FAULTS[fault]
    (acme / file).touch()
    edit(acme / file, old, new)
    assert main(["vendor", "check", "acme", "--part", "static", "--output", str(tmp_path / "out")]) == 1
    shown = "".join(capsys.readouterr())
    report = (tmp_path / "out" / "conformance.json").read_text()
    assert words in report
    page = (tmp_path / "out" / "conformance.md").read_text()
    assert PART not in shown + report + page
    assert PART not in (asked.read_text() if asked.exists() else "")
