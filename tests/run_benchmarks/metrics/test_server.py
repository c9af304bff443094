"""The port of the metrics, by real connections: it costs the run nothing, whatever is done to it."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from http.client import HTTPResponse
from types import SimpleNamespace

import pytest
from prometheus_client import Metric

from run_benchmarks.metrics import server as server_module
from run_benchmarks.metrics.families import RunCollector
from run_benchmarks.metrics.listener import RunListener
from run_benchmarks.metrics.server import MOST_REQUESTS, MetricsServer
from tests.connections import is_open
from tests.fakes.clock import HandClock
from tests.ports import free_port, reserved_port
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.metrics.exported import samples_in
from tests.run_benchmarks.metrics.watched import waited_for
from utils.errors import FlagPerfError

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
WAIT_S = 60.0


class Served:
    """A server that answers, and where."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.port, self.listener = free_port(), RunListener("127.0.0.1", 9435)
        self.server = MetricsServer(address, self.port, self.listener)
        self.server.start()

    def get(self, **headers: str) -> HTTPResponse:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=headers)
        response: HTTPResponse = urllib.request.urlopen(request, timeout=WAIT_S)  # noqa: S310
        return response

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)


@pytest.fixture
def served() -> Iterator[Served]:
    there = Served()
    yield there
    there.server.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    clock = HandClock()
    monkeypatch.setattr(server_module, "time", clock)
    return clock


def test_a_scraper_gets_the_format_that_it_asks_for(served: Served) -> None:
    plain, strict = served.get(), served.get(Accept=OPENMETRICS)
    assert "text/plain" in plain.headers["content-type"]
    assert "openmetrics" in strict.headers["content-type"]
    assert "process_cpu_seconds_total" in samples_in(strict.read().decode())


def test_who_comes_by_a_strangers_name_is_turned_away(served: Served) -> None:
    """A page of another site, whose name was made to lead here, would read along."""
    with pytest.raises(urllib.error.HTTPError) as error:
        served.get(Host="evil.example:9435")
    assert error.value.code == 421
    assert served.get(Host=f"localhost:{served.port}").status == 200
    assert served.get(Host=socket.gethostname()).status == 200


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is given up for the time that he takes."""
    monkeypatch.setattr(server_module._Handler, "timeout", 10 * WAIT_S)
    monkeypatch.setattr(server_module, "STALLED_AFTER_S", 10 * WAIT_S)


@pytest.mark.usefixtures("patient")
def test_scrapers_that_hang_take_a_few_threads_and_the_first_of_them_make_room(served: Served) -> None:
    before = threading.active_count()
    hanging = [served.connect() for _ in range(3 * MOST_REQUESTS)]
    for each in hanging[::2]:
        each.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
    waited_for(lambda: sum(map(is_open, hanging)) == MOST_REQUESTS, "the rest is closed")
    assert threading.active_count() - before == MOST_REQUESTS
    assert served.get().status == 200
    for each in hanging:
        each.close()
    waited_for(lambda: threading.active_count() == before, "they have gone")
    assert served.get().status == 200


def test_a_scraper_that_stalls_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server_module._Handler.timeout == server_module.STALLED_AFTER_S
    monkeypatch.setattr(server_module._Handler, "timeout", 0.1)
    stalled = served.connect()
    stalled.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
    assert stalled.recv(1) == b""


@pytest.mark.usefixtures("patient")
def test_a_scraper_that_drips_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However soon its next byte comes, no read of it stalls."""
    dripping = served.connect()
    dripping.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
    waited_for(lambda: served.server._server.silent, "it has begun")
    monkeypatch.setattr(server_module, "STALLED_AFTER_S", 0.1)
    assert dripping.recv(1) == b""


@pytest.mark.usefixtures("patient")
def test_while_others_are_answered_who_comes_is_turned_away(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Semaphore(0), threading.Event()

    def text(_: str) -> tuple[str, bytes]:
        begun.release()
        may_end.wait(WAIT_S)
        return "text/plain", b""

    monkeypatch.setattr(served.server._texts, "text", text)
    asking = [served.connect() for _ in range(MOST_REQUESTS)]
    for each in asking:
        each.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert all(begun.acquire(timeout=WAIT_S) for _ in asking)
    late = served.connect()
    assert not late.recv(1)
    may_end.set()
    assert all(each.recv(12) == b"HTTP/1.0 200" for each in asking)


def test_who_does_not_read_is_given_up_without_a_traceback(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_module._Handler, "timeout", 0.1)
    answered = threading.Event()

    def text(_: str) -> tuple[str, bytes]:
        answered.set()
        return "text/plain", b" " * 2**24

    monkeypatch.setattr(served.server._texts, "text", text)
    before = threading.active_count()
    with socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect(("127.0.0.1", served.port))
        silent.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answered.wait(WAIT_S)
        waited_for(lambda: threading.active_count() == before, "it is given up")
    assert not capfd.readouterr().err


def test_who_asks_too_often_gets_the_last_answer_again(
    served: Served, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a scraper in a loop would take a core from the controller."""
    made: list[float] = []

    def slow(self: RunCollector) -> Iterable[Metric]:
        made.append(clock.now)
        clock.now += 3  # of this thread's time
        return ()

    monkeypatch.setattr(RunCollector, "collect", slow)
    for second in (1000, 1010, 1032.9, 1033, 1040):
        clock.now = max(clock.now, second)
        served.get().read()
    assert made == [1000, 1033]
    served.get(Accept=OPENMETRICS).read()
    assert len(made) == 3, "the other format has its own"
    for version in range(5):
        served.get(Accept=f"application/openmetrics-text; version=1.{version}.0").read()
    assert len(made) == 3, "there are no more formats than two"


def test_there_is_nothing_else_at_the_port(served: Served) -> None:
    for path in ("", "/", "/metrics/../etc/passwd"):
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(f"http://127.0.0.1:{served.port}{path}", timeout=WAIT_S)
        assert error.value.code == 404


def test_a_fault_is_said_to_the_scraper_and_once_in_the_log(
    served: Served, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(self: RunCollector) -> Iterable[Metric]:
        raise OverflowError("too large")

    monkeypatch.setattr(RunCollector, "collect", broken)
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as error:
            served.get()
        assert error.value.code == 500
    assert log_lines.text.count("the metrics could not be made, and the run goes on: OverflowError") == 1
    assert "Traceback" not in capfd.readouterr().err


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    with reserved_port() as port, pytest.raises(FlagPerfError) as error:
        MetricsServer("127.0.0.1", port, RunListener("127.0.0.1", 9435))
    assert error.value.message == f"127.0.0.1, port {port} cannot be listened on: Address already in use"
    assert error.value.where == "METRICS_PORT of test_conf.py" and "METRICS_PORT = None" in error.value.remedy


def test_a_port_that_was_closed_can_be_opened_again_at_once() -> None:
    served = Served()
    assert served.get().status == 200
    served.server.close()
    with pytest.raises(OSError):
        served.connect()
    again = MetricsServer("127.0.0.1", served.port, RunListener("127.0.0.1", 9435))
    again.close()


def test_ipv6() -> None:
    port = free_port()
    server = MetricsServer("::1", port, RunListener("127.0.0.1", 9435))
    server.start()
    response = urllib.request.urlopen(f"http://[::1]:{port}/metrics", timeout=WAIT_S)
    assert response.status == 200
    server.close()


# ---- the end of a run


def scraped(served: Served, clock: HandClock, *seconds: float) -> None:
    """Scrapes at these times; each is answered before the next."""
    for second in seconds:
        clock.now = second
        before = tuple(served.server._scrapes)
        served.get().read()
        waited_for(lambda before=before: tuple(served.server._scrapes) != before, "it has left")


def test_who_reads_along_reads_the_end_too(
    served: Served, clock: HandClock, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    made: list[float] = []
    waits: list[float] = []

    def slow(self: RunCollector) -> Iterable[Metric]:
        made.append(clock.now)
        clock.now += 0.5
        return ()

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        served.get().read()
        return awaited.wait(WAIT_S)

    monkeypatch.setattr(RunCollector, "collect", slow)
    monkeypatch.setattr(server_module, "SHARE", 0.001)
    awaited = threading.Event()
    scraped(served, clock, 1000, 1010)
    assert len(made) == 1, "the second got the same text again"
    clock.now = 1012
    monkeypatch.setattr(
        served.server, "_scraped", SimpleNamespace(clear=awaited.clear, set=awaited.set, wait=wait)
    )
    served.server.wait_for_last_scrape()
    assert waits == [12.25] and len(made) == 2, "the last one is of the end"
    assert "whoever reads the metrics sees the end, within 12 s" in log_lines.text


@pytest.mark.parametrize(
    ("scrapes", "now"),
    [((), 1000), ((1000,), 1001), ((1000, 1010), 1100), ((1000, 1060), 1061)],
    ids=["nobody", "a single look", "a scraper that has gone", "a scraper that comes seldom"],
)
def test_nobody_else_is_waited_for(
    served: Served, clock: HandClock, monkeypatch: pytest.MonkeyPatch, scrapes: tuple[float, ...], now: float
) -> None:
    def wait(seconds: float) -> bool:
        raise AssertionError(f"waited for {seconds} s")

    scraped(served, clock, *scrapes)
    clock.now = now
    monkeypatch.setattr(served.server._scraped, "wait", wait)
    served.server.wait_for_last_scrape()
