"""Scripts that start their own ranks get what the starters of FlagPerf's main branch give them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import Contract, LaunchJob
from run_benchmarks.frameworks.node_scripts import IN_FOLDER
from tests.benchmarks.driver.ranks import TRAINING

JOB = LaunchJob(
    nnodes=2,
    nproc=8,
    master_addr="10.1.2.3",
    master_port=29501,
    log_dir="/logs/host_noderank1",
    script=("/tree/benchmarks/llm/x/run_pretraining.py", "--not", "for it"),
    python="/opt/python3",
    hosts=("10.1.2.3", "10.1.2.4"),
    contract=Contract("acme", "/data set", "/tree/acme/llm-x/config", "config_A1x2x8.py"),
)
CASE = (
    "--vendor=acme --data_dir=/data_set --log_dir=/logs/host_noderank1 "
    "--flagperf_config_file=/tree/acme/llm-x/config/config_A1x2x8.py"
)
PLACE = "--nproc_per_node=8 --nnodes=2 --node_rank=1 --master_addr=10.1.2.3 --master_port=29501"


def script_of(name: str, job: LaunchJob = JOB) -> list[str]:
    """The command of a node's one process; the launcher starts one."""
    argv = open_framework(name).launch_argv(job, 1)
    assert argv[argv.index("--nproc") + 1] == "1"
    return [word.replace("/data set", "/data_set") for word in argv[argv.index("--") + 1 :]]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("megatron_core060", f"{PLACE} {CASE}"),
        ("megatron-deepspeed", f"{PLACE} {CASE}"),
        ("flagscale_2409", f"--world_size=16 --hosts=10.1.2.3,10.1.2.4 --host_addr=10.1.2.4 {CASE}"),
    ],
)
def test_a_script_runs_in_its_folder_with_its_nodes_place(name: str, options: str) -> None:
    shell, command, first, folder, *words = script_of(name)
    assert (shell, command, first, folder) == ("sh", "-c", IN_FOLDER, "sh")
    assert words == ["/tree/benchmarks/llm/x", "/opt/python3", "-u", "run_pretraining.py", *options.split()]


def test_deepspeed_runs_under_torchrun_and_deepspeed_torch_by_itself() -> None:
    rest = "--node_rank 1 --nproc_per_node 8 --nnodes 2"
    config = "run_pretraining.py --flagperf_config /tree/acme/llm-x/config/config_A1x2x8.py"
    settings = "/logs/host_noderank1/ds_config.json"
    torchrun = f"/opt/python3 -m torch.distributed.run {PLACE}"
    assert " ".join(script_of("deepspeed_v0.14.4")[7:]) == (
        f"{torchrun} {config} {rest} --deepspeed --deepspeed_config {settings} --data_dir /data_set"
    )
    assert " ".join(script_of("deepspeed-torch")[7:]) == (
        f"/opt/python3 {config} {rest} --deepspeed {settings} --data_dir /data_set"
    )


def test_tensorflow_is_told_of_its_cluster_by_its_environment() -> None:
    argv = open_framework("tensorflow2").launch_argv(JOB, 1)
    variables = {argv[place + 1] for place, word in enumerate(argv) if word == "--set"}
    assert variables == {
        "FLAGPERF_NNODES=2",
        "FLAGPERF_NPROC=8",
        "FLAGPERF_BASE_PORT=29501",
        "FLAGPERF_NODE_RANK=1",
        "FLAGPERF_HOSTS=10.1.2.3,10.1.2.4",
        "FLAGPERF_HOSTS_PORTS=2222",
    }
    assert argv[-3:] == JOB.script


def run_deepspeed(folder: Path) -> subprocess.CompletedProcess[str]:
    """A case in `folder` by the command that a node runs; its script prints what it sees."""
    job = replace(
        JOB,
        nnodes=1,
        log_dir=str(folder / "logs"),
        script=(str(folder / "case/run_pretraining.py"),),
        python=sys.executable,
        contract=Contract("acme", "/data", str(folder / "config"), "config_A1x1x8.py"),
    )
    argv = open_framework("deepspeed-torch").script_argv(job, 0)
    environment = {**os.environ, "PYTHONPATH": str(TRAINING)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_the_settings_of_case_and_vendor_become_one_and_net_sh_counts_with_its_first_line(
    tmp_path: Path,
) -> None:
    for name in ("case", "config", "logs"):
        (tmp_path / name).mkdir()
    (tmp_path / "case/run_pretraining.py").write_text(
        "import os, shutil, sys\n"
        "print(os.getcwd(), os.environ.get('FIRST'), os.environ.get('SECOND'), *sys.argv)\n"
        "print(shutil.which('python3'))\n"
    )
    (tmp_path / "case/ds_config.json").write_text('{"train_batch_size": 8, "fp16": {"enabled": true}}')
    (tmp_path / "config/ds_config.json").write_text('{"train_batch_size": 64}')
    (tmp_path / "config/net.sh").write_text("export FIRST='a b';\nexport SECOND=never\n")
    done = run_deepspeed(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / 'case'} a b None run_pretraining.py --flagperf_config")
    assert done.stdout.endswith(f"\n{Path(sys.executable).with_name('python3')}\n")  # as `torchrun` beside it
    merged = json.loads((tmp_path / "logs/ds_config.json").read_text())
    assert merged == {"train_batch_size": 64, "fp16": {"enabled": True}}
    (tmp_path / "config/net.sh").write_text("")  # most of them are empty
    assert run_deepspeed(tmp_path).returncode == 0
    (tmp_path / "config/ds_config.json").write_text("[]")
    done = run_deepspeed(tmp_path)
    assert done.returncode == 1 and "is no JSON object" in done.stderr and not done.stdout
