"""Weights on their way from worker to worker, by a real server: whole or not at all, bounded, the newest kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
import uvicorn

from benchmarks.search import weight_exchange
from benchmarks.search.client import Place
from benchmarks.search.controller import weights
from benchmarks.search.controller.weights import WeightStore
from benchmarks.search.weight_exchange import WeightExchange
from tests.benchmarks.search.engine_processes import environment_with, wait_until
from tests.benchmarks.search.trials import CASE, TRAINING, digits
from tests.ports import free_port
from utils.case_form import ROLES_TOKEN
from utils.checkpoints import CHECKPOINT_DIR, CONTINUE_FROM
from utils.roles import NODES, RANKS, WORKERS, worker_token

CONFIG = TRAINING / "cpu/search-pytorch/config"


@contextmanager
def served(folder: Path, earlier: Path | None = None) -> Iterator[Place]:
    """The store alone, on a port of its own; the run's token is looked at before it is asked."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(WeightStore(folder, earlier), host="127.0.0.1", port=port, log_level="warning")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
        assert thread.is_alive()
    yield Place("127.0.0.1", port, "a" * 16, 0, "0" * 32, 1, 0)
    server.should_exit = True
    thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_one_worker_stores_another_one_gets(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20_000
    with served(tmp_path / "weights") as place:
        exchange = WeightExchange(place)
        assert exchange.get(3) is None
        exchange.put(3, data)
        assert WeightExchange(place).get(3) == data
        exchange.put(3, b"those of a later attempt")
        assert exchange.get(3) == b"those of a later attempt"
    assert names(tmp_path / "weights") == ["3.safetensors"]
    with served(tmp_path / "weights") as place:
        assert WeightExchange(place).get(3) == b"those of a later attempt", "they outlive the controller"


def test_what_the_earlier_round_stored_is_had_where_there_is_nothing_newer(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    with served(earlier) as place:
        for trial in (1, 2):
            WeightExchange(place).put(trial, b"old")
    (earlier / "3.safetensors").symlink_to(earlier / "1.safetensors")
    with served(tmp_path / "weights", earlier) as place:
        WeightExchange(place).put(2, b"new")
        assert [WeightExchange(place).get(trial) for trial in (1, 2, 3, 4)] == [b"old", b"new", None, None]
    assert (earlier / "2.safetensors").read_bytes() == b"old"
    assert names(tmp_path / "weights") == ["1.safetensors", "2.safetensors"]
    with served(tmp_path / "third", tmp_path / "weights") as place:
        assert WeightExchange(place).get(1) == b"old", "as it was asked for in the round before"
    with served(tmp_path / "fourth", tmp_path / "gone") as place:
        assert WeightExchange(place).get(1) is None


def test_what_cannot_be_kept_of_the_earlier_round_is_had_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = tmp_path / "earlier"
    with served(earlier) as place:
        WeightExchange(place).put(1, b"old")
    full = shutil.disk_usage(tmp_path)._replace(total=2**40, free=0)
    monkeypatch.setattr(weights.shutil, "disk_usage", lambda _: full)
    with served(tmp_path / "weights", earlier) as place:
        assert WeightExchange(place).get(1) == b"old"
    assert names(tmp_path / "weights") == []


def test_the_oldest_trials_weights_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "HISTORY", 3)
    with served(tmp_path / "weights") as place:
        for trial in (9, 10, 8, 11, 12):
            WeightExchange(place).put(trial, b"x")
    assert names(tmp_path / "weights") == ["10.safetensors", "11.safetensors", "12.safetensors"]


def test_too_much_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(weights, "most_bytes", lambda parameters: 1000)
    with served(tmp_path / "weights") as place:
        WeightExchange(place).put(1, bytes(1001))
        WeightExchange(place).put(2, bytes(1000))
    assert "weights of trial 1: PUT" in capsys.readouterr().out
    assert names(tmp_path / "weights") == ["2.safetensors"]


def test_the_last_room_of_a_disk_is_not_for_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    with served(tmp_path / "weights") as place:
        for free, expected in ((2**32, ["1.safetensors"]), (2**32 - 1, ["1.safetensors"])):
            full = usage._replace(total=2**40, free=free)
            monkeypatch.setattr(weights.shutil, "disk_usage", lambda _, full=full: full)
            WeightExchange(place).put(1 + (free < 2**32), b"x")
            assert names(tmp_path / "weights") == expected


def test_weights_on_their_way_give_way_where_the_disk_fills_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(tmp_path)
    folder = tmp_path / "weights"

    def filled_by_others(_: int) -> object:
        (partial,) = folder.glob(".partial-*")
        return usage._replace(total=2**40, free=2**34 - 2**33 * (partial.stat().st_size > 2**20))

    monkeypatch.setattr(weights, "LEFT_FREE", 2**34)
    monkeypatch.setattr(weights.shutil, "disk_usage", filled_by_others)
    with served(folder) as place:
        WeightExchange(place).put(1, bytes(2**24))
        assert names(folder) == []
        WeightExchange(place).put(2, b"x")
    assert "weights of trial 1: PUT" in capsys.readouterr().out
    assert names(folder) == ["2.safetensors"]


def test_what_a_killed_controller_was_being_sent_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / ".partial-a1").write_bytes(b"x")
    (tmp_path / "1.safetensors").write_bytes(b"y")
    WeightStore(tmp_path)
    assert names(tmp_path) == ["1.safetensors"]


def test_an_answer_without_end_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(tmp_path / "weights") as place:
        WeightExchange(place).put(1, bytes(1001))
        monkeypatch.setattr(weight_exchange, "LARGEST_WEIGHTS", 1000)
        assert WeightExchange(place).get(1) is None
    assert "an answer of more than 1000 bytes" in capsys.readouterr().out


def test_a_body_that_is_cut_off_leaves_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "weights") as place:
        connection = HTTPConnection(place.host, place.port, timeout=60)
        connection.putrequest("PUT", "/weights/4")
        connection.putheader("Content-Length", "1000")
        connection.endheaders(b"x" * 10)
        connection.close()
        WeightExchange(place).put(5, b"y")
        assert WeightExchange(place).get(4) is None
    assert names(tmp_path / "weights") == ["5.safetensors"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/weights/0", 404),
        ("GET", "/weights/1/../../state", 404),
        ("PUT", "/weights/..%2fstate", 404),
        ("PUT", "/weights/99999999999", 404),
        ("PUT", "/weights/1e3", 404),
        ("DELETE", "/weights/1", 405),
    ],
)
def test_nothing_else_is_read_or_written(tmp_path: Path, method: str, path: str, status: int) -> None:
    with served(tmp_path / "weights") as place:
        connection = HTTPConnection(place.host, place.port, timeout=60)
        connection.request(method, path, b"x" if method == "PUT" else None)
        assert connection.getresponse().status == status
        connection.close()
    assert names(tmp_path) == ["weights"] and names(tmp_path / "weights") == []


def test_a_controller_that_is_away_costs_the_weights_alone(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = WeightExchange(Place("127.0.0.1", free_port(), "a" * 16, 0, "0" * 32, 1, 0))
    nobody.put(1, b"x")
    assert nobody.get(1) is None
    assert "ConnectionRefusedError" in capsys.readouterr().out


def test_the_real_controller_hands_out_what_the_round_that_it_goes_on_from_has(tmp_path: Path) -> None:
    (tmp_path / "earlier/weights").mkdir(parents=True)
    (tmp_path / "earlier/weights/1.safetensors").write_bytes(b"old")
    port, token = free_port(), "a-token-of-this-run"
    demo = [
        "--vendor",
        "cpu",
        "--extern_config_dir",
        str(CONFIG),
        "--extern_config_file",
        "config_cpux1x2.py",
    ]
    words = ["--case_dir", str(CASE), "--data_dir", str(digits(tmp_path)), *demo, "--enable_extern_config"]
    variables = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        WORKERS: "2",
        RANKS: "1",
        NODES: "1",
        ROLES_TOKEN: token,
        CHECKPOINT_DIR: str(tmp_path / "own"),
        CONTINUE_FROM: str(tmp_path / "earlier"),
    }
    command = [sys.executable, "-m", "benchmarks.search.controller", *words]
    with subprocess.Popen(command, env=environment_with(variables), stdout=subprocess.DEVNULL) as controller:
        try:
            exchange = WeightExchange(Place("127.0.0.1", port, worker_token(token, 0), 0, "0" * 32, 1, 0))
            wait_until(lambda: exchange.get(1) == b"old" or controller.poll() is not None, "it answers")
            assert controller.poll() is None
            assert exchange.get(2) is None
        finally:
            controller.kill()
