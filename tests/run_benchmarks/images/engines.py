"""Real engines of this machine for the tests of images."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.lab import podman
from tests.lab.commands import LabError
from tests.lab.images import stream


def engine_with(image: str, kind: str) -> str:
    """The command of a real engine of this machine, `docker` or `podman`, that has the image.

    Podman gets it from Docker. Skip where there is none; in CI, where that would hide a hole, fail.
    """
    try:
        command = podman.command() if kind == "podman" else kind
        if kind == "podman" and not _has(command, image):
            stream([image], [*command.split(), "load"])
        if not _has(command, image):
            raise LabError(f"there is no image {image}")
    except (LabError, OSError) as error:
        reason = f"{kind} on this machine: {error}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return command


def _has(command: str, image: str) -> bool:
    argv = [*command.split(), "image", "inspect", image]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0
