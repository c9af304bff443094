"""A controller and its workers as processes: killed, stopped, lied to, and at their end."""

from __future__ import annotations

import random
import resource
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from msgspec import Raw

from benchmarks.search.client import Client, RequestRefusedError
from benchmarks.search.controller.connections import CONNECTIONS_OF_WORKER, STRANGERS
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import (
    LARGEST_BODY,
    Beat,
    Heartbeat,
    Hyperparameters,
    NextTrial,
    Propose,
    Proposed,
    Settled,
    encode,
)
from tests.benchmarks.search.engine_parts import register, who
from tests.benchmarks.search.engine_processes import (
    PATIENCE_S,
    SECRET,
    Engine,
    environment_with,
    running,
    wait_until,
)
from tests.benchmarks.search.made_worker import join
from utils.roles import worker_token

SETTINGS = SearchSettings(2, 600.0, None, (1, 2, 3), 1, heartbeat_s=0.5, lost_s=5.0)
KILLS, SEED = 20, 7


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with running(tmp_path, SETTINGS) as made:
        yield made


@pytest.fixture
def listening(engine: Engine) -> Engine:
    engine.controller()
    engine.wait_for("SEARCH_START")
    return engine


def bearer(worker: int) -> dict[str, str]:
    return {"Authorization": f"Bearer {worker_token(SECRET, worker)}"}


def head_of(line: str) -> bytes:
    """Of the first worker's request."""
    words = ("POST / HTTP/1.1", "Host: x", f"Authorization: {bearer(0)['Authorization']}", line, "", "")
    return "\r\n".join(words).encode()


def post(engine: Engine, body: bytes, headers: dict[str, str] | None = None, method: str = "POST") -> int:
    connection = HTTPConnection("127.0.0.1", engine.port, timeout=PATIENCE_S)
    connection.request(method, "/", body, headers or bearer(0))
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_stopped_workers_trial_is_taken_over_and_it_comes_back(listening: Engine) -> None:
    stopped = listening.worker(0, 0.5)
    listening.wait_for("TRIAL_START")
    stopped.send_signal(signal.SIGSTOP)
    wait_until(
        lambda: [event for event in listening.events("TRIAL_END") if event.value["state"] == "lost"], "lost"
    )
    (lost,) = [event.value for event in listening.events("TRIAL_END") if event.value["state"] == "lost"]
    listening.worker(1, 0.5)

    def again() -> list[int]:
        starts = [event.value for event in listening.events("TRIAL_START")]
        return [
            start["worker"] for start in starts if (start["trial"], start["attempt"]) == (lost["trial"], 2)
        ]

    wait_until(again, "handed out again")
    assert again() == [1]
    stopped.send_signal(signal.SIGCONT)
    wait_until(
        lambda: (
            listening.events("WORKER")[-1].value["state"] in ("back", "joined")
            and [event for event in listening.events("WORKER") if event.value["state"] == "back"]
        ),
        "back",
    )
    came = listening.events("WORKER")
    before = len(listening.events("TRIAL_END"))
    listening.wait_for("TRIAL_END", before + 4)
    ends = [event.value for event in listening.events("TRIAL_END")[before:]]
    assert {0, 1} == {end["worker"] for end in ends}, came


def test_a_controller_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing(
    engine: Engine,
) -> None:
    moments, heard = random.Random(SEED), Counter[str]()
    workers = [engine.worker(number, 0.02) for number in (0, 1)]
    earlier: list[object] = []
    for _ in range(KILLS):
        controller = engine.controller()
        starts = heard["starts"] = heard["starts"] + 1
        wait_until(
            lambda: engine.events() and engine.events("SEARCH_START")[-1].value["starts"] == starts,  # noqa: B023
            f"start {starts}",
        )
        with pytest.raises(subprocess.TimeoutExpired):
            controller.wait(moments.uniform(0.0, 0.6))
        controller.kill()
        controller.wait()
        told = [(event.name, dict(event.value)) for event in engine.events()[1:]]
        assert told[: len(earlier)] == earlier  # what was told once is told at every start, first
        earlier = told
    engine.controller()
    wait_until(lambda: engine.events("SEARCH_START")[-1].value["starts"] == KILLS + 1, "the last start")
    told = [(event.name, dict(event.value)) for event in engine.events()[1:]]
    assert told[: len(earlier)] == earlier
    before = len(engine.events("TRIAL_END"))
    engine.wait_for("TRIAL_END", before + 4)
    epochs = [
        (event.value["trial"], event.value["attempt"], event.value["epoch"])
        for event in engine.events("EPOCH")
    ]
    starts_ = [(event.value["trial"], event.value["attempt"]) for event in engine.events("TRIAL_START")]
    ends = [(event.value["trial"], event.value["attempt"]) for event in engine.events("TRIAL_END")]
    assert len(set(epochs)) == len(epochs)
    assert len(set(starts_)) == len(starts_)
    assert len(set(ends)) == len(ends)
    assert {trial for trial, _ in starts_} == set(range(1, max(starts_)[0] + 1))
    assert len(set(starts_) - set(ends)) <= len(workers)
    assert all(worker.poll() is None for worker in workers)
    for log in ("worker0.log", "worker1.log"):  # each trial that a worker had stands in the log
        taken = [line for line in (engine.folder / log).read_text().splitlines() if line.startswith("trial")]
        assert len(taken) == len(set(taken))


def test_the_deadline_ends_controller_and_workers_in_the_middle_of_trials(tmp_path: Path) -> None:
    settings = SearchSettings(2, 4.0, None, (50,), 1, heartbeat_s=0.5, lost_s=30.0)
    with running(tmp_path, settings) as engine:
        controller = engine.controller()
        workers = [engine.worker(0, 0.1), engine.worker(1, 300.0)]
        assert controller.wait(PATIENCE_S) == 0
        assert [worker.wait(PATIENCE_S) for worker in workers] == [0, 0]
        (end,), (finished,) = engine.events("SEARCH_END"), engine.events("FINISHED")
        assert end.value["reason"] == "deadline"
        assert end.value["time_s"] >= 4.0
        assert finished.value["epochs"] == len(engine.events("EPOCH")) == end.value["epochs"]
        assert {event.value["state"] for event in engine.events("TRIAL_END")} == {"cut_off"}


def test_a_signal_ends_the_controller_and_another_start_goes_on(listening: Engine) -> None:
    listening.worker(0, 0.1)
    listening.wait_for("TRIAL_END", 2)
    listening.living[0].terminate()
    assert listening.living[0].wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert not listening.events("SEARCH_END")
    before = [dict(event.value) for event in listening.events("TRIAL_END")]
    listening.controller()
    wait_until(lambda: listening.events("SEARCH_START")[-1].value["starts"] == 2, "the second start")
    after = listening.wait_for("TRIAL_END", len(before) + 1)
    assert [dict(event.value) for event in after][: len(before)] == before


def test_strangers_and_nonsense_are_refused(listening: Engine) -> None:
    message = encode(register(0))
    assert post(listening, message, {"Accept": "*/*"}) == 401
    assert post(listening, message, {"Authorization": "Bearer another-run's-token"}) == 401
    assert post(listening, message, {"Authorization": f"Bearer {SECRET}"}) == 401
    assert post(listening, message, {"Authorization": f"Bearer {worker_token(SECRET, 0)}x"}) == 401
    assert post(listening, message, bearer(1)) == 401, "another worker's"
    assert post(listening, message, method="PUT") == 422
    assert post(listening, b"{}") == 422
    assert post(listening, b"[" * LARGEST_BODY) == 422
    assert post(listening, message.replace(b'"ranks"', b'"more":1,"ranks"')) == 422
    assert post(listening, encode(NextTrial(**who(0), waited_s=0.0))) == 410
    assert post(listening, message) == 200
    assert post(listening, encode(register(0, session="f" * 32))) == 409
    assert len(listening.events("WORKER")) == 1
    assert "Traceback" not in listening.log.read_text()


def test_a_proposal_is_not_looked_at_before_one_is_asked_for(listening: Engine) -> None:
    dear = Proposed(None, (), Raw(b'"\xff"'), Hyperparameters(0.0, 3, 32))
    assert post(listening, encode(register(0))) == 200
    assert post(listening, encode(Propose(**who(0), proposed=dear))) == 200
    assert "Traceback" not in listening.log.read_text()


@pytest.mark.parametrize(
    "request_",
    [
        head_of("Transfer-Encoding: chunked") + 1000 * b"1\r\n \r\n" + b"0\r\n\r\n",
        head_of("Transfer-Encoding: chunked").replace(b"Bearer", b"Strange") + b"1\r\n \r\n",
        head_of(10_000 * "a:\r\n" + "a:"),
        2 * head_of("Content-Length: 0"),
        head_of("Content-Length: 9000") + 9000 * b" " + head_of("Transfer-Encoding: chunked"),
        b"\x16\x03\x01\r\n\r\n",
    ],
    ids=[
        "in chunks",
        "a stranger's, in chunks",
        "a long head",
        "before the answer",
        "behind a body",
        "no HTTP",
    ],
)
def test_a_request_that_no_workers_client_sends_is_not_answered(listening: Engine, request_: bytes) -> None:
    with (
        socket.create_connection(("127.0.0.1", listening.port), PATIENCE_S) as connection,
        suppress(ConnectionError),
    ):
        connection.sendall(request_)
        assert connection.recv(100) == b""
    assert post(listening, encode(register(0))) == 200


def test_a_body_that_says_that_it_is_too_long_is_refused_unread(listening: Engine) -> None:
    with socket.create_connection(("127.0.0.1", listening.port), PATIENCE_S) as connection:
        connection.sendall(head_of(f"Content-Length: {LARGEST_BODY + 1}"))
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_who_has_no_token_does_not_hold_up_who_has_one(listening: Engine) -> None:
    beats = Client(listening.place(0), 0.0)
    beats.send(register(0))
    with ExitStack() as idle:
        for _ in range(2 * STRANGERS):  # which say nothing
            idle.enter_context(socket.create_connection(("127.0.0.1", listening.port), PATIENCE_S))
        assert isinstance(beats.send(Heartbeat(**who(0), waited_s=0.0)), Beat)
        assert isinstance(Client(listening.place(1), 0.0).send(register(1)), Settled)
    assert len(listening.events("WORKER")) == 2


def test_a_stranger_is_let_go_before_a_worker_that_is_slow(listening: Engine) -> None:
    place = ("127.0.0.1", listening.port)
    with (
        socket.create_connection(place, PATIENCE_S) as slow,
        socket.create_connection(place, PATIENCE_S) as idle,
    ):
        message = encode(register(0))
        slow.sendall(head_of(f"Content-Length: {len(message)}"))
        assert idle.recv(1) == b""
        slow.sendall(message)
        assert slow.recv(100).startswith(b"HTTP/1.1 200")


def test_a_worker_with_too_many_connections_loses_its_own_oldest(listening: Engine) -> None:
    places = range(CONNECTIONS_OF_WORKER + 1)
    opened = [HTTPConnection("127.0.0.1", listening.port, timeout=PATIENCE_S) for _ in places]

    def ask(connection: HTTPConnection) -> int:
        connection.request("POST", "/", encode(register(0)), bearer(0))
        response = connection.getresponse()
        response.read()
        return response.status

    assert {ask(each) for each in opened} == {200}
    assert opened[0].sock.recv(1) == b""
    opened[1].auto_open = 0  # the same connection, or none
    assert ask(opened[1]) == 200
    for each in opened:
        each.close()


@pytest.mark.parametrize("loss", [1e30, -0.1, float("nan")])
def test_a_worker_whose_loss_is_beyond_all_bounds_goes_on(
    listening: Engine, monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    monkeypatch.setenv("PYTHONPATH", environment_with({})["PYTHONPATH"])  # of the process that proposes
    ends: list[str] = []
    with join(listening.place(0), on_end=lambda _, reason: ends.append(reason)) as worker:
        trial = next(worker.trials())
        samples = {"training_samples": 1000, "validation_samples": 100}
        assert worker.epoch_done(trial, 1, accuracy=0.1, loss=loss, **samples)
    assert listening.events("EPOCH")[0].value["loss"] is None and not ends


def test_a_refusal_says_why(listening: Engine) -> None:
    client = Client(listening.place(5))
    with pytest.raises(RequestRefusedError, match="worker 5 of 2") as caught:
        client.send(register(5))
    assert caught.value.status == 422
    assert isinstance(Client(listening.place(1)).send(register(1)), Settled)


def test_a_low_limit_of_open_files_is_told(tmp_path: Path) -> None:
    words = [str(tmp_path), "0", SECRET, encode(SETTINGS).decode()]
    command = [sys.executable, "-m", "tests.benchmarks.search.made_controller", *words]

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

    done = subprocess.run(
        command,
        preexec_fn=lower,
        capture_output=True,
        text=True,
        env=environment_with({}),
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert "2 workers need 1098 open files, and no more than 200 are allowed" in done.stderr
    assert "ulimit -Hn" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_state_is_told_without_a_traceback(engine: Engine) -> None:
    (engine.folder / "search.sqlite").write_bytes(b"no database" * 1000)
    assert engine.controller().wait(PATIENCE_S) == 1
    text = engine.log.read_text()
    assert "file is not a database" in text
    assert "-> begin a new search" in text
    assert "Traceback" not in text


def test_a_disk_that_is_full_ends_the_controller_and_another_start_goes_on(engine: Engine) -> None:
    controller = engine.controller(most_bytes=200_000)
    workers = [engine.worker(number, 0.02) for number in (0, 1)]
    assert controller.wait(PATIENCE_S) == 1
    text = engine.log.read_text()
    assert "the state of the search cannot be kept" in text
    assert "what was kept is kept" in text
    assert "Traceback" not in text
    kept = [dict(event.value) for event in engine.events("EPOCH")]
    engine.controller()
    wait_until(lambda: engine.events("SEARCH_START")[-1].value["starts"] == 2, "the second start")
    after = engine.wait_for("EPOCH", len(kept) + 4)
    assert [dict(event.value) for event in after][: len(kept)] == kept
    assert all(worker.poll() is None for worker in workers)
