"""Credentials never reach the terminal, the logs or plan.json."""

from __future__ import annotations

import json

import pytest

from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.redact import redact_argv, redact_text, redact_url, redact_values
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import Tree


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://bob:secret@host/simple", "https://***@host/simple"),
        ("https://t0ken@host:8443/simple/", "https://***@host:8443/simple/"),
        ("https://bob:a@b@host/simple", "https://***@host/simple"),
        ("http://one@a/ https://two@b/", "http://***@a/ https://***@b/"),
        ("bob:secret@proxy:3128", "***@proxy:3128"),
        ("https://host/a@b", "https://host/a@b"),
        ("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:1:2:1"),
        ("alice@node1", "alice@node1"),
        (f"BASE_IMAGE=python:3.11@sha256:{'0' * 64}", f"BASE_IMAGE=python:3.11@sha256:{'0' * 64}"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("--env=HF_TOKEN=abc", "--env=HF_TOKEN=***"),
        ("{'DB_PASSWORD': 'abc', 'A': 'b'}", "{'DB_PASSWORD': ***, 'A': 'b'}"),
        ("tokenizer=bert max_tokens=3", "tokenizer=bert max_tokens=3"),
    ],
)
def test_assignments(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["run", "--env", "HF_TOKEN=a b c", "x"], ["run", "--env", "HF_TOKEN=***", "x"]),
        (['PASSWORD=p"q,rest', "x"], ["PASSWORD=***", "x"]),
        (["--env=API_KEY=a\nb", "x"], ["--env=API_KEY=***", "x"]),
        (["--token", "abc", "--password", "abc", "x"], ["--token", "***", "--password", "***", "x"]),
        (["--max-tokens", "3", "--tokenizer", "bert"], ["--max-tokens", "3", "--tokenizer", "bert"]),
        (["pull", "https://bob:a@host/x"], ["pull", "https://***@host/x"]),
    ],
)
def test_each_argument_of_a_command_is_hidden_to_its_end(argv: list[str], shown: list[str]) -> None:
    assert redact_argv(argv) == shown


def test_what_is_hidden_in_a_command_stays_as_it_is_in_a_message() -> None:
    assert redact_text("x --env 'HF_TOKEN=***' y") == "x --env 'HF_TOKEN=***' y"


def test_values_by_name() -> None:
    values = {"API_KEY": "abc", "index-url": "https://u:p@h/", "BASE_IMAGE": "b:1"}
    assert redact_values(values) == {"API_KEY": "***", "index-url": "https://***@h/", "BASE_IMAGE": "b:1"}


def test_plan_as_dict_is_json_without_secrets(tree: Tree) -> None:
    edit(
        tree,
        "test_conf.py",
        "",
        "PIP_SOURCE = 'https://bob:hunter2@mirror.example.org/simple'\n"
        "IMAGE_BUILD_ARGS = {'HF_TOKEN': 'hunter2', 'PROXY': 'http://bob:hunter2@p:1', 'BASE_IMAGE': 'b:1'}\n"
        "ACCE_CONTAINER_OPT = '--gpus all --env \"HF_TOKEN=a hunter2\" --token hunter2'\n",
    )
    plan = tree.load()
    text = json.dumps(plan_as_dict(plan), allow_nan=False)
    assert "hunter2" not in text
    content = json.loads(text)
    assert content["run"]["pip"]["options"] == {"index-url": "https://***@mirror.example.org/simple"}
    assert content["cases"][0]["image_build_args"]["BASE_IMAGE"] == "b:1"
    assert content["cases"][0]["container_options"] == [
        "--gpus",
        "all",
        "--env",
        "HF_TOKEN=***",
        "--token",
        "***",
    ]
    assert content["run"]["log_path"] == str(plan.run.log_path)
    assert content["cluster"]["hosts"] == ["node1", "node2"]
    assert content["cases"][0]["settings"]["name"] == "toy:pytorch:X1:1:2:1"
    assert content["cases"][0]["parameters"]["train_batch_size"] == 16
    assert content["cases"][0]["chip"]["peak_flops"] == {"bf16": 1e14}
    assert content["cases"][0]["vendor"]["parse_devices"] == "parse_device_list"
    assert plan.cases[0].image_build_args["HF_TOKEN"] == "hunter2", "the plan itself is what is run"
