"""Power by Redfish, of a simulated BMC: what of it is read, and what it cannot do to who asks it."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.meters import https, open_meter
from run_benchmarks.meters.base import RefusedError, UnreachableError
from run_benchmarks.meters.redfish_resources import LONGEST_PATH
from run_benchmarks.plan.meters import Meter
from tests.ports import free_port
from tests.run_benchmarks.meters.simulators import (
    PASSWORD,
    USER,
    Resources,
    chassis,
    link,
    power,
    reading,
    self_signed,
)
from utils.errors import FlagPerfError
from utils.telemetry.records import Scope

VARIABLE = "METER_OF_THE_TESTS"


def test_the_power_of_the_chassis_is_read_live(tmp_path: Path) -> None:
    resources = chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": power(344)}
    with reading(tmp_path, resources) as (source, bmc):
        assert source.read() == 344
        assert source.note.endswith("PowerControl 0 (System Power Control) of chassis 1")
        assert source.scope is Scope.MACHINE
        bmc.set_resource("Chassis/1/Power", power(512.5))
        assert source.read() == 512.5
        bmc.set_resource("Chassis/1/Power", power(None))
        with pytest.raises(FlagPerfError, match="no power is told"):
            source.read()


SUPPLIES = {"PowerSupplies": [{"PowerInputWatts": 210.0}, {"PowerInputWatts": 190}]}
WAYS: list[tuple[Resources, float, str]] = [
    (
        chassis(Power=link("Chassis/1/Power"), EnvironmentMetrics=link("Chassis/1/EM"))
        | {"Chassis/1/Power": power(300), "Chassis/1/EM": {"PowerWatts": {"Reading": 301.5}}},
        301.5,
        "EnvironmentMetrics",
    ),
    (
        chassis(Power=link("Chassis/1/Power"), EnvironmentMetrics=link("Chassis/1/None"))
        | {"Chassis/1/Power": {**power(0), **SUPPLIES}},
        400,
        "input of 2 power supplies",
    ),
    (
        chassis(PowerSubsystem=link("Chassis/1/PS"))
        | {"Chassis/1/PS": {"PowerSupplies": link("Chassis/1/PS/All")}}
        | {"Chassis/1/PS/All": {"Members": [link("Chassis/1/PS/A"), link("Chassis/1/PS/B")]}}
        | {f"Chassis/1/PS/{n}": {"Metrics": link(f"Chassis/1/PS/{n}/M")} for n in "AB"}
        | {f"Chassis/1/PS/{n}/M": {"InputPowerWatts": {"Reading": 150}} for n in "AB"},
        300,
        "input of 2 power supplies",
    ),
    (
        chassis(Sensors=link("Chassis/1/Sensors"))
        | {
            "Chassis/1/Sensors": {
                "Members": [link("Chassis/1/Sensors/cpu0_power"), link("Chassis/1/Sensors/total_power")]
            }
        }
        | {
            "Chassis/1/Sensors/total_power": {"Reading": 222},
            "Chassis/1/Sensors/cpu0_power": {"Reading": 80},
        },
        222,
        "sensor total_power",
    ),
]


@pytest.mark.parametrize(
    ("resources", "watts", "what"), WAYS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_the_bmc_has_is_found(resources: Resources, watts: float, what: str, tmp_path: Path) -> None:
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == watts
        assert f": {what} of chassis 1" in source.note


def test_a_sensor_of_a_part_is_not_the_machine_however_total_it_is(tmp_path: Path) -> None:
    path = "Chassis/1/Sensors/gpu_total_power"
    resources = chassis(Sensors=link("Chassis/1/Sensors")) | {"Chassis/1/Sensors": {"Members": [link(path)]}}
    with (
        reading(tmp_path, resources | {path: {"Reading": 2800}}) as (source, _),
        pytest.raises(FlagPerfError, match="tells no power: 1"),
    ):
        source.read()


def test_a_long_name_is_not_quoted(tmp_path: Path) -> None:
    name = "x" * 200
    resources = chassis(name, Power=link(f"Chassis/{name}/Power")) | {f"Chassis/{name}/Power": power(344)}
    with reading(tmp_path, resources) as (source, _):
        assert source.read() == 344
        assert source.note.endswith("of chassis ... (200 characters in all)")


@pytest.mark.parametrize(
    "links",
    [
        {"ComputerSystems": [link("Systems/1"), link("Systems/2")]},
        {"ComputerSystems": [link("Systems/1")], "ComputerSystems@odata.count": 2},
    ],
)
def test_a_chassis_of_several_systems_is_marked(links: Any, tmp_path: Path) -> None:
    resources = chassis(Power=link("Chassis/1/Power"), Links=links)
    with reading(tmp_path, resources | {"Chassis/1/Power": power(900)}) as (source, _):
        source.read()
        assert source.scope is Scope.CHASSIS and "shared with other machines" in source.note


# ---- whom it trusts


def test_a_certificate_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    resources = chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": power(344)}
    with reading(tmp_path, resources) as (source, _):
        for unknown in (replace(source.meter, ca_file=""), replace(source.meter, host="localhost")):
            with pytest.raises(UnreachableError, match="not to be trusted") as error:
                open_meter(unknown).read()
            assert "ca_file" in error.value.remedy
        trusting = replace(source.meter, ca_file="", accept_self_signed=True)
        assert open_meter(trusting).read() == 344


FOREIGN = (
    "https://192.0.2.1/redfish/v1/Chassis",
    "//192.0.2.1/redfish/v1",
    "/etc/passwd",
    "/redfish/v1/a b",
    "/redfish/v1/x\r\nX: y",
    pytest.param(f"/redfish/v1/{'x' * LONGEST_PATH}", id="long"),
    7,
)


@pytest.mark.parametrize("path", FOREIGN)
def test_no_link_leads_elsewhere(path: Any, tmp_path: Path) -> None:
    resources = {"": {"Chassis": {"@odata.id": path}}}
    with reading(tmp_path, resources) as (source, _), pytest.raises(FlagPerfError, match="Chassis"):
        source.read()


def test_who_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(UnreachableError, match="cannot be asked") as error:
        open_meter(Meter("redfish", "127.0.0.1", free_port())).read()
    assert "reaches it" in error.value.remedy


# ---- log-in and misbehaviour: a FAKE server of the tests' own, for sushy-static asks for no password


class Served(BaseHTTPRequestHandler):
    """Answers by the test's own function, and writes down what it was asked."""

    protocol_version = "HTTP/1.1"
    answer: Callable[[Served], None]
    asked: list[tuple[str, str, dict[str, str], bytes]]

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, dict(self.headers), body))
        type(self).answer(self)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the library's names

    def give(self, status: int, content: Any = None, **headers: str) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path, answer: Callable[[Any], None]) -> Iterator[tuple[Any, list[Any]]]:
    """What reads a BMC that answers so, and what that was asked."""
    asked: list[Any] = []
    handler = type("Handler", (Served,), {"answer": staticmethod(answer), "asked": asked})
    certificate, key = self_signed(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield (
            open_meter(
                Meter("redfish", "127.0.0.1", server.server_port, USER, VARIABLE, ca_file=str(certificate))
            ),
            asked,
        )
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)


RESOURCES = {
    f"/redfish/v1/{path}".rstrip("/"): content
    for path, content in (chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": power(344)}).items()
}


def with_sessions(tokens: list[str]) -> Callable[[Any], None]:
    """A BMC that has sessions; of its tokens the last one is valid, and each log-in makes a further one."""

    def answer(bmc: Any) -> None:
        if bmc.command == "POST":
            sent = json.loads(bmc.asked[-1][3])
            if sent != {"UserName": USER, "Password": PASSWORD}:
                return bmc.give(401)
            tokens.append(f"token-{len(tokens)}")
            return bmc.give(201, {}, X_Auth_Token=tokens[-1], Location=f"{https.SESSIONS}/{len(tokens)}")
        if bmc.headers.get("X-Auth-Token") not in tokens[-1:]:
            return bmc.give(401)
        return bmc.give(200, RESOURCES.get(bmc.path, {}))

    return answer


def test_a_session_is_opened_renewed_and_closed(tmp_path: Path) -> None:
    tokens: list[str] = []
    with served(tmp_path, with_sessions(tokens)) as (source, asked):
        assert source.read() == 344
        assert source.read() == 344
        assert len(tokens) == 1, "one session for all samples"
        tokens.append("another")  # the session has run out
        assert source.read() == 344
        source.close()
        assert asked[-1][:2] == ("DELETE", f"{https.SESSIONS}/3")
        assert sum(PASSWORD.encode() in body for _, _, _, body in asked) == 2


def test_where_there_are_no_sessions_each_request_has_the_password(tmp_path: Path) -> None:
    def answer(bmc: Any) -> None:
        if bmc.command == "POST":
            return bmc.give(405)
        known = bmc.headers.get("Authorization") == "Basic cmVhZGVyOldqNy1CTUMtc2VjcmV0"
        return bmc.give(200, RESOURCES[bmc.path]) if known else bmc.give(401)

    with served(tmp_path, answer) as (source, _):
        assert source.read() == 344


def test_a_wrong_password_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BMCs lock the account after some."""
    monkeypatch.setenv(VARIABLE, "wrong")
    with served(tmp_path, with_sessions([])) as (source, asked):
        for _ in range(3):
            with pytest.raises(RefusedError, match="does not let in reader"):
                source.sample(1)
        assert len(asked) == 1


def test_one_that_is_down_is_asked_less_and_less_often(tmp_path: Path) -> None:
    def answer(bmc: Any) -> None:
        bmc.give(503)

    with served(tmp_path, answer) as (source, asked):
        for _ in range(5):
            with pytest.raises(FlagPerfError, match="503"):
                source.sample(1)
        assert len(asked) == 2, "a log-in and a request; the next are within the pause"


MISBEHAVIOURS: list[tuple[str, Callable[[Any], None]]] = [
    ("sends /redfish/v1 elsewhere", lambda bmc: bmc.give(302, Location="https://192.0.2.1/redfish/v1")),
    ("more than 1048576 bytes", lambda bmc: bmc.give(200, {"text": "x" * 2**21})),
    ("holds no JSON object", lambda bmc: bmc.give(200, [1])),
    ("cannot be asked", lambda bmc: bmc.wfile.write(b"nonsense\r\n\r\n")),
]


@pytest.mark.parametrize(("why", "answer"), MISBEHAVIOURS)
def test_nothing_that_it_answers_is_followed_or_held(
    why: str, answer: Callable[[Any], None], tmp_path: Path
) -> None:
    with served(tmp_path, answer) as (source, _), pytest.raises(FlagPerfError, match=why):
        source.read()


def test_one_that_never_answers_costs_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "TIMEOUT_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        meter = Meter("redfish", "127.0.0.1", silent.getsockname()[1], accept_self_signed=True)
        with pytest.raises(UnreachableError, match="did not answer in time"):
            open_meter(meter).read()


@pytest.mark.parametrize("interim", [True, False])
def test_what_comes_around_an_answer_is_bounded_too(interim: bool, tmp_path: Path) -> None:
    """Interim responses and trailers without end took all of a core, at every sample anew."""

    def answer(bmc: Any) -> None:
        if not interim:
            bmc.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        with suppress(OSError):
            while True:
                bmc.wfile.write((b"HTTP/1.1 100 Continue\r\n\r\n" if interim else b"a: b\r\n") * 1000)

    with served(tmp_path, answer) as (source, _), pytest.raises(FlagPerfError, match="bytes in all"):
        source.read()


def _slow_content(bmc: Any) -> bytes:
    bmc.send_response(200)
    bmc.send_header("Content-Length", "100000")
    bmc.end_headers()
    return b" "


def _slow_headers(bmc: Any) -> bytes:
    bmc.wfile.write(b"HTTP/1.1 200 OK\r\na: ")
    return b"x"


def _endless_trailers(bmc: Any) -> bytes:
    bmc.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
    return b"a: b\r\n"


@pytest.mark.parametrize(
    "begin", [_slow_content, _slow_headers, _endless_trailers, lambda _: b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_one_that_answers_for_ever_is_left(
    begin: Callable[[Any], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's client reads on through interim responses, headers and trailers, however many there are."""
    monkeypatch.setattr(https, "ANSWER_S", 0.3)
    stop = threading.Event()

    def answer(bmc: Any) -> None:
        drop = begin(bmc)
        with suppress(OSError):
            while not stop.wait(0.02):
                bmc.wfile.write(drop)

    with served(tmp_path, answer) as (source, _):
        with pytest.raises(FlagPerfError, match="not done with its answer"):
            source.read()
        stop.set()
