"""A BMC asked by HTTPS: its certificate is verified, its answers bounded, and nothing that leads elsewhere followed."""

from __future__ import annotations

import base64
import http.client
import io
import json
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from run_benchmarks.meters.base import RefusedError, UnreachableError
from run_benchmarks.plan.meters import Meter
from run_benchmarks.reading import object_in
from utils.errors import FlagPerfError

TIMEOUT_S = 5.0  # for each step of an answer
ANSWER_S = 15.0  # for all of it, from the connection on
LARGEST_ANSWER = 2**20  # bytes
SESSIONS = "/redfish/v1/SessionService/Sessions"
# What a BMC may send us to: a resource of its own.
PATH = r"/redfish/v1(/[\w.~:%@+,#()-]*)*"
# The next page of a list may have a query: where the list goes on.
PAGE = PATH + r"(\?[\w.~:%@+,()$&=;*!'/?-]*)?"
_PATH, _PAGE = re.compile(PATH, re.ASCII), re.compile(PAGE, re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{1,2048}")


class _Counted(io.RawIOBase):
    """What comes over a line, and no more of it than an answer may have."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw, self._left = raw, 2 * LARGEST_ANSWER

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Some more; HTTPException where it is too much."""
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise http.client.HTTPException(f"it answers with more than {2 * LARGEST_ANSWER} bytes in all")
        return count

    def close(self) -> None:
        """Close the line too."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Counted(sock.makefile("rb", buffering=0)))


class _Connection(http.client.HTTPSConnection):
    """A connection that another thread can end, whatever this one waits for.

    http.client bounds neither the responses before the one that counts (100) nor what comes behind its content.
    """

    response_class = _Response

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=TIMEOUT_S, context=context)
        self._tls = context
        self._line: socket.socket | None = None

    def connect(self) -> None:
        """By TCP, then TLS."""
        http.client.HTTPConnection.connect(self)
        self._line = self.sock.dup()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)

    def hang_up(self) -> None:
        """From now on nothing comes any more."""
        with suppress(OSError):
            if self._line:
                self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it for good."""
        super().close()
        line, self._line = self._line, None
        if line:
            line.close()


class Bmc:
    """One BMC. A session is opened where it has sessions, else each request has the password."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._connection: _Connection | None = None
        self._login: dict[str, str] = {}
        self._session = ""  # its path, if it is a session that we opened

    def get(self, path: str) -> Mapping[str, Any]:
        """The JSON object at a path.

        Raises:
            RefusedError: the BMC does not let the user in.
            FlagPerfError: it does not answer in time, or not with one.
        """
        if self._meter.user and not self._login:
            self._log_in()
        status, content, _ = self._request("GET", path)
        if status == http.client.UNAUTHORIZED and self._session:  # which has run out
            self._log_in()
            status, content, _ = self._request("GET", path)
        self._check(status, path)
        return object_in(content.decode("utf-8", "replace"), f"{self._meter.where}{path}")

    def close(self) -> None:
        """End the session: a BMC has few of them."""
        if self._session:
            self._request("DELETE", self._session)
        self._disconnect()

    def _log_in(self) -> None:
        user, password = self._meter.user, self._meter.password()
        self._login, self._session = {}, ""
        body = json.dumps({"UserName": user, "Password": password}).encode()
        status, _, headers = self._request("POST", SESSIONS, body)
        if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            raise self._refused(status)
        token, place = headers.get("x-auth-token", ""), headers.get("location", "")
        if _TOKEN.fullmatch(token):
            self._login = {"X-Auth-Token": token}
            path = place[place.find("/redfish/") :]
            self._session = path if _PATH.fullmatch(path) else ""
        else:  # no sessions here
            plain = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._login = {"Authorization": f"Basic {plain}"}

    def _check(self, status: int, path: str) -> None:
        where = self._meter.where
        if status == http.client.UNAUTHORIZED:
            raise self._refused(status)
        if 300 <= status < 400:
            remedy = "write the address that it sends to, if that is the BMC's"
            raise FlagPerfError(f"{where} sends {path} elsewhere ({status}): not followed", remedy=remedy)
        if status != http.client.OK:
            raise FlagPerfError(f"{where} has no {path} ({status})")

    def _refused(self, status: int) -> RefusedError:
        self._login = {}
        who = self._meter.user or "nobody without a user"
        remedy = "see that user and password are right, and that the user may read"
        return RefusedError(f"{self._meter.where} does not let in {who} ({status})", remedy=remedy)

    def _request(
        self, method: str, path: str, body: bytes | None = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, content, and headers by their names in small letters.

        A connection that the BMC has closed meanwhile is opened anew, once.
        """
        if not _PAGE.fullmatch(path):
            raise FlagPerfError(f"{self._meter.where} names a resource that is not its own")
        was_open = self._connection is not None
        try:
            return self._exchange(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError) as error:
            self._disconnect()
            if not was_open:
                raise self._unreachable(error) from error
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            self._disconnect()
            raise self._unreachable(error) from error
        except FlagPerfError:
            self._disconnect()
            raise
        return self._request(method, path, body)

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, Mapping[str, str]]:
        if self._connection is None:
            self._connection = _Connection(self._meter.host, self._meter.port, _context(self._meter))
        headers = {"Accept": "application/json", "OData-Version": "4.0", **self._login}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection, late = self._connection, threading.Event()

        def give_up() -> None:
            late.set()
            connection.hang_up()

        deadline = threading.Timer(ANSWER_S, give_up)
        deadline.daemon = True
        deadline.start()
        try:
            connection.request(method, path.partition("#")[0], body, headers)
            with connection.getresponse() as response:
                named = {name.lower(): value for name, value in response.headers.items()}
                answer = response.status, self._content(response), named
        except (OSError, http.client.HTTPException):
            if not late.is_set():
                raise
        finally:
            deadline.cancel()
        if late.is_set():  # what was cut off may look like an answer that has ended
            raise FlagPerfError(f"{self._meter.where} is not done with its answer after {ANSWER_S:g} s")
        return answer

    def _content(self, response: http.client.HTTPResponse) -> bytes:
        content = b""
        while chunk := response.read1(2**16):
            content += chunk
            if len(content) > LARGEST_ANSWER:
                raise FlagPerfError(f"{self._meter.where} answers with more than {LARGEST_ANSWER} bytes")
        return content

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _unreachable(self, error: Exception) -> UnreachableError:
        where = self._meter.where
        if isinstance(error, ssl.SSLCertVerificationError):
            remedy = (
                "give the certificate, or that of its authority, as ca_file; or set accept_self_signed, with which "
                "nobody can tell whether it is the BMC that gets the password"
            )
            message = f"the certificate of {where} is not to be trusted: {error.verify_message}"
            return UnreachableError(message, remedy=remedy)
        why = (
            "it did not answer in time"
            if isinstance(error, TimeoutError)
            else str(error) or type(error).__name__
        )
        return UnreachableError(
            f"{where} cannot be asked: {why}", remedy="see that this machine reaches it, at this port"
        )


def _context(meter: Meter) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=meter.ca_file or None)
    context.verify_flags |= (
        ssl.VERIFY_X509_PARTIAL_CHAIN
    )  # a BMC's own certificate may stand in the file itself
    if meter.accept_self_signed:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
