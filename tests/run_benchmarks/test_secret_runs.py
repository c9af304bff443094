"""A whole run that is given secrets: no file, no screen, no list of processes and no image shows one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shlex
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import reserved_port
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.images.engines import engine_with
from tests.run_benchmarks.process_table import argvs_meanwhile
from tests.run_benchmarks.whole_run import SCRIPT, WholeRun, make_whole_run

CASE = "toy:pytorch:X1:1:1:1"
NAMES = (
    *(
        "LICENSE_KEY",
        "SSH_PRIVATE_KEY",
        "DB_PASS",
        "DB_PWD",
        "PGPASSWORD",
        "NETRC_AUTH",
        "GH_PAT",
        "X_API_KEY",
    ),
    *("HEADER", "SITE", "DATABASE_URL"),
)
# The task tells what it was given by its digest; where it is to fail, it shows everything.
TELLING = """
import hashlib, os
names = {names!r}
text = "|".join(os.environ.get(name, "") for name in names)
print("digest", hashlib.sha256(text.encode()).hexdigest(), flush=True)
if behaviour == "fail":
    raise SystemExit("cannot log in with " + text)
"""
AROUND_SECRETS = re.compile("^Authorization: Bearer |^postgresql://mlflow:|@h/db$")
DOCKERFILE = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n"


@dataclass
class SecretRun:
    """A run, the secrets that its task is given by their names, and how its images' names begin."""

    whole: WholeRun
    values: dict[str, str]
    engine: str
    registry: str

    @property
    def words(self) -> list[str]:
        """What must not be seen: each value is unlike anything else, line by line."""
        values = (AROUND_SECRETS.sub("", value) for value in self.values.values())
        return [line for value in values for line in value.splitlines()]

    @property
    def digest(self) -> str:
        return hashlib.sha256("|".join(self.values.values()).encode()).hexdigest()

    def shown_in(self, text: str) -> list[str]:
        """The secrets that stand in a text, in whatever spelling."""
        plain = text.replace("\\", "").replace("'\"'\"'", "'")
        return [word for word in self.words if word in text or word in plain]

    def run(self, umask: int = 0o022) -> tuple[subprocess.CompletedProcess[str], set[str]]:
        """What the run printed, and the command lines of all processes meanwhile."""
        with argvs_meanwhile() as argvs:
            argv = self.whole.command()
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False, umask=umask)
        return done, argvs

    def images(self) -> list[str]:
        """The images that the run has made."""
        if not self.engine:
            return []
        argv = [*self.engine.split(), "images", "--format", "{{.Repository}}:{{.Tag}}"]
        listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
        return [name for name in listed if name.startswith(self.registry)]


def secret_values() -> dict[str, str]:
    values = {name: f"{name.lower()}-{secrets.token_hex(6)}" for name in NAMES}
    values["X_API_KEY"] = f"two words {values['X_API_KEY']}, and 'more'"
    values["SSH_PRIVATE_KEY"] = f"-----BEGIN-{secrets.token_hex(6)}\nline-{secrets.token_hex(6)}\n"
    values["DATABASE_URL"] = f"postgresql://mlflow:Pw#/?:{secrets.token_hex(6)}@h/db"
    values["HEADER"] = f"Authorization: Bearer {secrets.token_hex(8)}"
    return values


@pytest.fixture(params=["process", "docker", "podman"])
def secret_run(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SecretRun]:
    """A process gets them by the environment script of its case, a container by its options."""
    kind, values = request.param, secret_values()
    engine = "" if kind == "process" else engine_with(BASE_IMAGE, kind)
    registry = f"flagperf-test-{secrets.token_hex(4)}.invalid"
    options = " ".join(f"-e {shlex.quote(f'{name}={value}')}" for name, value in values.items())
    lines = [
        f"ACCE_CONTAINER_OPT = {options!r}",
        "SECRETS = ['SITE']",
        "FLAGPERF_LOG_LEVEL = 'debug'",
        f"IMAGE_BUILD_ARGS = {{'BASE_IMAGE': {BASE_IMAGE!r}, 'REPO_TOKEN': {values['GH_PAT']!r},"
        f" 'REPO_URL': {values['DATABASE_URL']!r}}}",
        f"IMAGE_REGISTRY = {registry!r}",
        "PIP_FROM_HOST = True",
    ]
    if engine:
        lines += ["RUNTIME = 'docker'", f"CONTAINER_ENGINE = {engine!r}"]
    with reserved_port() as port:
        whole = make_whole_run(tmp_path, port, monkeypatch)
        whole.configure("\n".join(lines) + "\n")
        whole.tree.write("acme/docker_image/pytorch/Dockerfile", DOCKERFILE)
        whole.tree.write(
            "acme/docker_image/pytorch/pytorch_install.sh",
            "cd /run/secrets && test -s REPO_TOKEN -a -s REPO_URL\n",
        )
        if not engine:
            exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
            whole.tree.write("acme/toy-pytorch/config/environment_variables.sh", exports)
        telling = TELLING.format(names=NAMES)
        head, behaviour, tail = SCRIPT.partition('"behaviour").read_text()\n')
        whole.tree.write("benchmarks/toy/pytorch/run_pretraining.py", head + behaviour + telling + tail)
        made = SecretRun(whole, values, engine, registry)
        yield made
        for image in made.images():
            subprocess.run([*engine.split(), "image", "rm", "--force", image], check=False)


def files_of(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(errors="replace") for path in paths}


def test_the_task_has_its_secrets_and_nobody_sees_them(secret_run: SecretRun) -> None:
    done, argvs = secret_run.run()
    assert done.returncode == 0, done.stderr[-3000:]
    files = files_of(secret_run.whole.result)
    (log,) = [text for name, text in files.items() if name.endswith("rank0.out.log")]
    assert f"digest {secret_run.digest}" in log, "the task was not given what it was to have"
    assert {
        name: secret_run.shown_in(text) for name, text in files.items() if secret_run.shown_in(text)
    } == {}
    assert secret_run.shown_in(done.stdout + done.stderr) == []
    assert any("run_pretraining.py" in argv for argv in argvs)
    assert secret_run.shown_in("\n".join(argvs)) == []
    for image in secret_run.images():
        for verb in (("history", "--no-trunc"), ("image", "inspect")):
            argv = [*secret_run.engine.split(), *verb, image]
            printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            assert secret_run.shown_in(printed) == []


def test_what_a_failing_task_says_is_shown_without_them(secret_run: SecretRun) -> None:
    """Its own logs are its own; what is shown of them is not."""
    secret_run.whole.behave("fail")
    done, _ = secret_run.run()
    assert done.returncode == 1, done.stderr[-3000:]
    files = files_of(secret_run.whole.result)
    ours = {name: text for name, text in files.items() if "_noderank0/" not in name}
    (theirs,) = [text for name, text in files.items() if name.endswith("rank0.out.log")]
    assert secret_run.shown_in(theirs) == secret_run.words
    assert {name: secret_run.shown_in(text) for name, text in ours.items() if secret_run.shown_in(text)} == {}
    assert secret_run.shown_in(done.stdout + done.stderr) == []
    result = json.loads(ours[f"{CASE}/round1/result.json"])
    assert "cannot log in with ***|***" in result["failure"]["evidence"]
    assert "cannot log in with ***|***" in ours["summary.md"]


FORBIDDEN = (
    0o022 if os.geteuid() == 0 else 0o002
)  # whatever the umask: the group is an ordinary user's choice


@pytest.mark.parametrize("umask", [0o022, 0o027, 0])
def test_files_have_the_modes_of_the_umask_and_plan_and_journal_are_private(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reserved_port() as port:
        whole = make_whole_run(tmp_path, port, monkeypatch)
        done = subprocess.run(whole.command(), capture_output=True, check=False, timeout=120, umask=umask)
    assert done.returncode == 0, done.stderr
    umask |= FORBIDDEN
    for folder in (whole.result.parent, whole.result, whole.result / CASE, whole.result / CASE / "round1"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o777 & ~umask, folder
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in whole.result.iterdir() if path.is_file()
    }
    assert {modes.pop(name) for name in ("plan.json", "journal.jsonl")} == {0o600}
    assert set(modes.values()) == {0o666 & ~umask}
    round_files = [path for path in (whole.result / CASE / "round1").iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in round_files} == {0o666 & ~umask}
