"""The port at which the metrics are read: opened before the run begins, closed at its end.

Nothing that a scraper does holds up the run: it is answered by threads of its own, few at a time, each for a few
seconds at most.
"""

from __future__ import annotations

import io
import socket
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from itertools import pairwise
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder
from prometheus_client.exposition import generate_latest as plain_text
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_text

from run_benchmarks.metrics.families import RunCollector
from run_benchmarks.metrics.listener import RunListener
from run_benchmarks.own_names import is_own_name
from run_benchmarks.run_log import LOGGER
from run_benchmarks.unforeseen import sentence_of, traceback_text
from utils.errors import FlagPerfError

# Answered at once; whoever comes then has the place of the first that has not asked yet, or is turned away.
MOST_REQUESTS = 8
STALLED_AFTER_S = 5.0  # without a whole request, or the whole answer taken
# Of thousands of devices a scrape takes a second of a core: whoever asks too often gets the last one again.
SHARE = 0.1
HEADERS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
# A scraper that comes this seldom is not waited for at the end of a run.
LONGEST_WAIT_S = 20.0

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class MetricsServer:
    """Serves what `listener` was told.

    Raises:
        FlagPerfError: the port cannot be opened.
    """

    def __init__(self, address: str, port: int, listener: RunListener) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(RunCollector(listener))
        ProcessCollector(registry=registry)  # what the controller itself takes
        self._scrapes: deque[float] = deque(maxlen=4)  # when the last ones were answered (monotonic, s)
        self._scraped = threading.Event()
        self._has_failed = False
        self._texts = _Texts(registry)
        try:
            self._server = _Server(address, port, self._answer)
        except OSError as error:
            remedy = "free it, name another port, or METRICS_PORT = None for no metrics"
            message = f"{address}, port {port} cannot be listened on: {error.strerror or error}"
            raise FlagPerfError(message, where="METRICS_PORT of test_conf.py", remedy=remedy) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def wait_for_last_scrape(self) -> None:
        """Who has been reading along reads how the run has ended, if he comes in time."""
        now, scrapes = time.monotonic(), tuple(self._scrapes)
        if len(scrapes) < 2:
            return
        interval_s = max(after - before for before, after in pairwise(scrapes))  # there may be two scrapers
        wait_s = scrapes[-1] + 1.5 * interval_s - now
        if 0 < wait_s <= LONGEST_WAIT_S:
            LOGGER.info(f"whoever reads the metrics sees the end, within {wait_s:.0f} s (Ctrl-C: without)")
            self._texts.forget()
            self._scraped.clear()
            self._scraped.wait(wait_s)

    def close(self) -> None:
        """Close the port; who is being answered just now may be cut off."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The metrics for requests by this machine's own names; a fault in them is logged, the first time."""
        if not is_own_name(environ.get("HTTP_HOST", "")):
            message = b"This name does not belong to the machine that serves the metrics.\n"
            return _said(start_response, "421 Misdirected Request", message)
        if environ.get("PATH_INFO") != "/metrics":
            return _said(start_response, "404 Not Found", b"The metrics are at /metrics.\n")
        try:
            content_type, text = self._texts.text(environ.get("HTTP_ACCEPT", ""))
        except Exception as error:
            self._log_first(error)
            message = b"The metrics could not be made; the run's log says why.\n"
            return _said(start_response, "500 Internal Server Error", message)
        start_response("200 OK", [("Content-Type", content_type), *HEADERS])
        return _Answer([text], self._note_scrape)

    def _note_scrape(self) -> None:
        self._scrapes.append(time.monotonic())
        self._scraped.set()

    def _log_first(self, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            message = f"the metrics could not be made, and the run goes on: {sentence_of(error)}"
            LOGGER.bind(detail=traceback_text(error)).warning(message)


class _Texts:
    """The text of a scrape, made anew only so often that this takes SHARE of a core at most."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._made: dict[str, tuple[float, bytes]] = {}  # by type: until when a text is given again, and it

    def text(self, accept: str) -> tuple[str, bytes]:
        """The type of content, of the two that there are, and the text; `accept` is what is asked for."""
        wants_openmetrics = choose_encoder(accept)[1].startswith(OPENMETRICS.partition(";")[0])
        encoder, content_type = (
            (openmetrics_text, OPENMETRICS) if wants_openmetrics else (plain_text, CONTENT_TYPE_PLAIN_0_0_4)
        )
        with self._lock:
            until, text = self._made.get(content_type, (0.0, b""))
            if time.monotonic() >= until:
                began = time.thread_time()
                text = encoder(self._registry)
                took_s = time.thread_time() - began
                self._made[content_type] = time.monotonic() + took_s / SHARE, text
            return content_type, text

    def forget(self) -> None:
        """The next one is made anew."""
        with self._lock:
            self._made.clear()


def _said(start_response: Callable[..., Any], status: str, message: bytes) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain"), *HEADERS])
    return [message]


class _Answer(list[bytes]):
    """An answer; `sent` is called when it has left."""

    def __init__(self, parts: Iterable[bytes], sent: Callable[[], None]) -> None:
        super().__init__(parts)
        self.close = sent


class _Handler(WSGIRequestHandler):
    timeout = STALLED_AFTER_S

    server: _Server

    def parse_request(self) -> bool:
        """As there; then it has asked."""
        is_right = super().parse_request()
        self.server.silent.pop(self.connection, None)
        return is_right

    def get_stderr(self) -> io.StringIO:
        """Nowhere: a traceback of the library's is of a scraper that has gone or reads nothing."""
        return io.StringIO()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scraper comes every few seconds."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 4 * MOST_REQUESTS  # whoever comes is heard, if only to be turned away

    def __init__(self, address: str, port: int, application: Application) -> None:
        self.address_family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
        self._slots = threading.BoundedSemaphore(MOST_REQUESTS)
        self.silent: dict[socket.socket, float] = {}  # that have not asked yet, and since when (monotonic, s)
        super().__init__((address, port), _Handler)
        self.set_app(application)

    def server_bind(self) -> None:
        """Without looking for the address's name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread, where there is one left or one can be made free."""
        if not self._slots.acquire(blocking=False) and not self._made_room():
            self.shutdown_request(request)
            return
        self.silent[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.silent.pop(request, None)
            self._slots.release()
            raise

    def _made_room(self) -> bool:
        """Whether the thread of the first that has not asked has ended for it."""
        first = next(iter(tuple(self.silent)), None)
        if first is None:
            return False
        self._end(first)
        return self._slots.acquire(timeout=STALLED_AFTER_S)

    def service_actions(self) -> None:
        """Every half second: end those that do not ask in time, however busy they are with it."""
        for silent, since in tuple(self.silent.items()):
            if time.monotonic() - since > STALLED_AFTER_S:
                self._end(silent)

    def _end(self, silent: socket.socket) -> None:
        """Its thread reads no more."""
        self.silent.pop(silent, None)
        with suppress(OSError):  # it has ended meanwhile
            silent.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As there; then the next one may come."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.silent.pop(request, None)
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that stalls or goes is no fault of ours."""
