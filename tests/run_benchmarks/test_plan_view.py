"""`run.py plan`: every command of a run, ready for a shell; nothing is touched and no secret is shown."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan_view import plan_lines
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree

DOCKER = "acme/docker_image/pytorch"
TWO_NODES = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:3")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = make_tree(tmp_path)
    tree.write(f"{DOCKER}/pytorch_install.sh", "pip install torch\n")
    tree.write("benchmarks/toy/pytorch/requirements.txt", "h5py\n")
    return tree


def view(tree: Tree, conf: str = TWO_NODES) -> list[str]:
    tree.configure(test_conf=conf)
    return list(plan_lines(tree.load()))


def commands(lines: list[str]) -> list[list[str]]:
    """The commands among the lines, as argument lists."""
    return [shlex.split(line) for line in lines if line and not line.startswith("#")]


def of_host(lines: list[str], host: str, rank: int) -> list[list[str]]:
    """The commands of one node of the case."""
    start = next(
        n for n, line in enumerate(lines) if line.startswith(f"# ----- host {host}, node rank {rank}")
    )
    end = next(
        (n for n, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("# ----- host")), None
    )
    return commands(lines[start:end])


SETTINGS = {
    "stream": "",
    "build": 'IMAGE_DISTRIBUTION = "build"\n',
    "registry": 'IMAGE_DISTRIBUTION = "registry"\nIMAGE_REGISTRY = "registry.local:5000/team"\n',
    "process": 'RUNTIME = "process"\n',
    "caches": "CLEAR_CACHES = True\n",
    "odd options": "ACCE_CONTAINER_OPT = \"--env='A=it is; $HOME `x`' --gpus all\"\n",
    "pip": 'PIP_SOURCE = "https://mirror.example.org/simple"\n',
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_line_can_be_pasted_into_a_shell(settings: str, tree: Tree) -> None:
    lines = view(tree, TWO_NODES + SETTINGS[settings])
    text = "\n".join(lines)
    checked = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    # Each command is one line, and the shell sees the words that a host would get.
    for line in lines:
        if line and not line.startswith("#"):
            shown = subprocess.run(
                ["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True
            ).stdout
            assert shown.split("\0")[:-1] == shlex.split(line)


def test_the_steps_of_a_node_are_there_in_order(tree: Tree) -> None:
    lines = view(tree)
    programs = [argv[:2] for argv in of_host(lines, "node1", 0)]
    wanted = [
        ["sh", "-c"],  # the tree
        ["sh", "-c"],  # the round's folder
        ["docker", "build"],
        ["docker", "run"],  # the install script
        ["docker", "commit"],
        ["docker", "run"],  # the requirements
        ["docker", "commit"],
        ["docker", "run"],  # the task
        ["docker", "run"],  # the monitor
        ["docker", "wait"],
        ["docker", "stop"],
        ["sh", "-c"],  # its logs
    ]
    position = -1
    for program in wanted:
        position = programs.index(program, position + 1)


def test_one_host_builds_and_the_other_loads(tree: Tree) -> None:
    lines = view(tree)
    assert ["docker", "load"] not in of_host(lines, "node1", 0)
    second = of_host(lines, "node2", 1)
    assert ["docker", "load"] in second
    assert not [argv for argv in second if argv[:2] == ["docker", "build"]]


def test_every_host_builds_where_that_is_asked_for(tree: Tree) -> None:
    lines = view(tree, TWO_NODES + SETTINGS["build"])
    for host, rank in (("node1", 0), ("node2", 1)):
        assert [argv for argv in of_host(lines, host, rank) if argv[:2] == ["docker", "build"]]
    assert ["docker", "load"] not in commands(lines)


def test_a_registry_is_pushed_to_and_pulled_from(tree: Tree) -> None:
    lines = view(tree, TWO_NODES + SETTINGS["registry"])
    first, second = of_host(lines, "node1", 0), of_host(lines, "node2", 1)
    assert [argv for argv in first if argv[:2] == ["docker", "push"]]
    assert [argv for argv in second if argv[:2] == ["docker", "pull"]]
    assert not [argv for argv in second if argv[:2] == ["docker", "push"]]


def test_without_containers_there_is_no_engine_in_it(tree: Tree) -> None:
    assert "docker" not in {argv[0] for argv in commands(view(tree, TWO_NODES + SETTINGS["process"]))}


def test_it_says_what_is_run_and_where_results_go(tree: Tree) -> None:
    text = "\n".join(view(tree))
    assert "runtime docker, hosts node1, node2" in text
    assert f"# results go to {tree.training}/result/run" in text
    assert "case toy:pytorch:X1:2:1:3: toy on pytorch, vendor acme" in text
    assert "3 rounds, deadline 86400 s" in text
    assert "parameters: acme/toy-pytorch/config/config_X1x2x1.py" in text


def test_nothing_is_touched(tree: Tree, tmp_path: Path) -> None:
    tree.configure(test_conf=TWO_NODES)
    before = _snapshot(tmp_path)
    lines = list(plan_lines(tree.load()))
    assert len(lines) > 20
    assert _snapshot(tmp_path) == before


def _snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def test_secrets_are_not_shown(tree: Tree) -> None:
    secrets = (
        'IMAGE_BUILD_ARGS = {"REPO_TOKEN": "word1", "MIRROR": "https://u:word2@host/x"}\n'
        'ACCE_CONTAINER_OPT = "--env=HF_TOKEN=word3 --env HTTPS_PROXY=http://u:word4@proxy:3128"\n'
        'PIP_SOURCE = "https://u:word5@mirror/simple"\n'
    )
    tree.write(f"{DOCKER}/Dockerfile", "FROM scratch\nRUN --mount=type=secret,id=REPO_TOKEN true\n")
    lines = view(tree, TWO_NODES + secrets)
    text = "\n".join(lines)
    assert [word for word in ("word1", "word2", "word3", "word4", "word5") if word in text] == []
    assert "proxy:3128" in text
    # Who pastes the commands fills in the variables that a command takes its secrets from.
    words = commands(lines)
    build = next(argv for argv in words if "--build-arg" in argv or "--tag" in argv)
    assert "--secret=id=REPO_TOKEN,env=REPO_TOKEN" in build
    assert not [word for word in build if "MIRROR" in word], "the Dockerfile does not ask for it"
    before = words[: words.index(build)]
    assert ["export", "REPO_TOKEN=***"] in before
    task = next(argv for argv in words if "--env=HF_TOKEN" in argv)
    before = words[: words.index(task)]
    assert ["export", "HF_TOKEN=***"] in before
    assert ["export", "HTTPS_PROXY=http://***@proxy:3128"] in before


def test_a_base_image_that_is_pinned_by_its_digest_is_no_secret(tree: Tree) -> None:
    base = f"registry.local/python:3.11@sha256:{'0' * 64}"
    lines = view(tree, TWO_NODES + f'IMAGE_BUILD_ARGS = {{"BASE_IMAGE": "{base}"}}\n')
    assert f"BASE_IMAGE={base}" in {word for argv in commands(lines) for word in argv}


def test_where_the_rounds_go_on_from_is_shown(tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF + 'CHECKPOINT_PATH = "/data/ck"\n')
    plan = load_plan(tree.config, tree.training, continue_from="run20250101000000")
    lines = list(plan_lines(plan))
    assert "# the rounds go on from the checkpoints of run20250101000000 in /data/ck" in lines
    assert any("find -H" in line and " /data/ck/run20250101000000/toy:" in line for line in lines)
    folder = "/data/ck/run20250101000000/toy:pytorch:X1:1:2:1/round1"
    assert any(f"--env=FLAGPERF_CONTINUE_FROM={folder}" in line for line in lines)
    assert any(f"source={folder},target={folder},readonly" in line for line in lines)


def test_a_comment_goes_on_in_no_further_line(tree: Tree) -> None:
    """It is to be pasted into a shell, and tells what an earlier run's folder says."""
    plan = replace(tree.load(), continue_from="run1\nrm -rf x\x1b[2J")
    (line,) = (line for line in plan_lines(plan) if "run1" in line and line.startswith("#"))
    assert line.startswith("# the rounds go on from the checkpoints of run1 rm -rf x\ufffd[2J in ")
