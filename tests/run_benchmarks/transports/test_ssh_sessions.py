"""Connections and sessions of the ssh transport, against a real sshd."""

from __future__ import annotations

import asyncio
import os
import resource
import shlex
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import Transport, TransportError
from run_benchmarks.transports.ssh import SshTransport
from tests.run_benchmarks.transports.conftest import eventually, host_at
from tests.run_benchmarks.transports.sshd import Sshd


def test_one_connection_serves_one_command_after_another(sshd: Sshd) -> None:
    async def scenario(transport: Transport) -> int:
        for _ in range(5):
            await transport.run(["true"])
        return len(sshd.connections())

    assert host_at(sshd).use(scenario) == 1


def test_long_waits_never_hold_up_other_commands(sshd: Sshd, tmp_path: Path) -> None:
    """MaxSessions is ten by default: thirty commands that wait need more than one connection."""
    go = tmp_path / "go"

    async def scenario(transport: Transport) -> list[int]:
        script = f"until [ -e {go} ]; do sleep 0.1; done; exit 7"
        waiting = [asyncio.ensure_future(transport.run(["sh", "-c", script])) for _ in range(30)]
        await asyncio.sleep(0.5)
        assert (await transport.run(["echo", "quick"])).stdout == "quick\n"
        assert not any(wait.done() for wait in waiting)
        go.touch()
        return [completed.returncode for completed in await asyncio.gather(*waiting)]

    assert host_at(sshd).use(scenario) == [7] * 30


def test_a_server_with_few_sessions_a_connection(make_sshd: Callable[..., Sshd]) -> None:
    server = make_sshd("MaxSessions 2")

    async def scenario(transport: Transport) -> list[int]:
        runs = (transport.run(["sh", "-c", f"sleep 0.2; exit {number}"]) for number in range(8))
        return [completed.returncode for completed in await asyncio.gather(*runs)]

    assert host_at(server).use(scenario) == list(range(8))


def test_a_server_without_sessions_is_an_error(make_sshd: Callable[..., Sshd]) -> None:
    server = make_sshd("MaxSessions 0")
    with pytest.raises(TransportError, match="opens no session"):
        host_at(server).use(lambda t: t.run(["true"]))


def test_a_login_shell_that_prints_without_an_end_is_not_listened_to(make_sshd: Callable[..., Sshd]) -> None:
    """What stands before the command's own output was kept up to the end of a line: all that the memory holds."""
    server = make_sshd("ForceCommand cat /dev/zero")
    with pytest.raises(TransportError, match="did not run the command"):
        host_at(server).use(lambda t: t.run(["true"], timeout=20))


def test_what_a_login_shell_prints_before_a_command_is_not_its_output(make_sshd: Callable[..., Sshd]) -> None:
    noise = "yes welcome | head -n 2000; eval"
    server = make_sshd(f'ForceCommand {noise} "$SSH_ORIGINAL_COMMAND"')
    assert host_at(server).use(lambda t: t.run(["echo", "\n x"])).stdout == "\n x\n"


def test_a_lost_connection_is_an_error_and_never_an_exit_code(sshd: Sshd) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.run(["true"])
        running = [asyncio.ensure_future(transport.run(["sleep", "30"])) for _ in range(3)]
        await asyncio.sleep(0.5)
        sshd.drop_connections()
        for result in await asyncio.gather(*running, return_exceptions=True):
            assert isinstance(result, TransportError)
            assert result.where == "127.0.0.1"
            assert "contact was lost" in result.message
        # and the next command connects again
        assert (await transport.run(["echo", "again"])).stdout == "again\n"

    host_at(sshd).use(scenario)


@asynccontextmanager
async def host_of(sshd: Sshd, **manner: Any) -> AsyncIterator[Transport]:
    """A host whose server is asyncssh's own, with the keys of `sshd` and a `manner` that OpenSSH has not."""
    server_key, clients = sshd.folder / "host_key", sshd.folder / "authorized_keys"
    options = {"server_host_keys": [str(server_key)], "authorized_client_keys": str(clients), **manner}
    async with asyncssh.listen("127.0.0.1", 0, **options) as server:
        port = server.get_port()
        cluster = ClusterSettings(hosts=("127.0.0.1",), ssh_port=port, ssh_accept_new_host_keys=True)
        transport = SshTransport("127.0.0.1", cluster)
        yield transport
        await transport.close()


def test_a_session_that_ends_without_an_exit_code(sshd: Sshd) -> None:
    """OpenSSH always sends one; here a server of asyncssh's own closes the session in good order without."""

    def answer(process: asyncssh.SSHServerProcess[str]) -> None:
        mark = shlex.split(process.command or "")[3]
        process.stdout.write(f"\n{mark} 2147483647\nhalf the output")
        process.close()

    async def scenario() -> None:
        async with host_of(sshd, process_factory=answer) as transport:
            with pytest.raises(TransportError, match="contact was lost"):
                await transport.run(["true"])

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("later", [False, True])
def test_a_server_that_closes_each_connection_behind_the_log_in_is_an_error(later: bool, sshd: Sshd) -> None:
    """It was logged in to again and again, without a pause or an end."""
    log_ins = 0

    class Closing(asyncssh.SSHServer):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            self.connection = conn

        def auth_completed(self) -> None:
            nonlocal log_ins
            log_ins += 1
            loop = asyncio.get_running_loop()
            (loop.call_soon if later else call)(self.connection.disconnect, 11, "not today")

    def call(work: Callable[[int, str], None], code: int, reason: str) -> None:
        work(code, reason)

    async def scenario() -> None:
        async with host_of(sshd, server_factory=Closing) as transport:
            runs = (transport.run(["true"]) for _ in range(3))
            for result in await asyncio.gather(*runs, return_exceptions=True):
                assert isinstance(result, TransportError) and result.where == "127.0.0.1"

    asyncio.run(asyncio.wait_for(scenario(), 30))
    assert log_ins <= 3


def test_contact_lost_between_commands_is_not_even_noticed(sshd: Sshd) -> None:
    async def scenario(transport: Transport) -> None:
        for _ in range(3):
            assert (await transport.run(["echo", "x"])).stdout == "x\n"
            sshd.drop_connections()
            await eventually(lambda: not sshd.connections())
            await asyncio.sleep(0.1)

    host_at(sshd).use(scenario)


def test_contact_lost_while_much_is_sent_and_received(sshd: Sshd) -> None:
    received = 0

    async def scenario(transport: Transport) -> None:
        async def count(chunk: bytes) -> None:
            nonlocal received
            received += len(chunk)
            if received > 4 * 2**20:
                sshd.drop_connections()

        with pytest.raises(TransportError, match="contact was lost"):
            await transport.run(["cat"], stdin=bytes(2**28), stdout=count)

    host_at(sshd).use(scenario)
    assert received < 2**28


def test_a_server_that_goes_away_is_refused_and_comes_back(sshd: Sshd) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.run(["true"])
        sshd.stop()
        await asyncio.sleep(0.1)
        with pytest.raises(TransportError, match="refuses connections"):
            await transport.run(["true"])
        sshd.start()
        assert (await transport.run(["true"])).ok

    host_at(sshd).use(scenario)


def test_what_a_login_shell_prints_is_not_the_commands_output(make_sshd: Callable[..., Sshd]) -> None:
    """A .bashrc that greets is usual on clusters."""
    server = make_sshd(r"""ForceCommand printf 'Welcome!\nno newline'; sh -c "$SSH_ORIGINAL_COMMAND" """)
    completed = host_at(server).use(lambda t: t.run(["sh", "-c", "echo out; exit 3"]))
    assert (completed.returncode, completed.stdout) == (3, "out\n")


def test_an_account_without_a_shell_is_an_error(make_sshd: Callable[..., Sshd]) -> None:
    server = make_sshd("ForceCommand echo This account is currently not available.; exit 1")
    with pytest.raises(TransportError, match="This account is currently not available") as caught:
        host_at(server).use(lambda t: t.run(["true"]))
    assert caught.value.where == "127.0.0.1"
    assert "POSIX login shell" in caught.value.remedy


def test_a_command_survives_its_connection_where_it_has_left_its_group(sshd: Sshd, tmp_path: Path) -> None:
    """What starts units relies on it: a detached process is not ended with the command that started it."""
    pid_file = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ >{pid_file}; exec sleep 60' >/dev/null 2>&1 & sleep 60"

    async def scenario(transport: Transport) -> None:
        running = asyncio.ensure_future(transport.run(["sh", "-c", script]))
        await eventually(lambda: pid_file.exists() and pid_file.read_text() != "")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    host_at(sshd).use(scenario)
    os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_the_limit_of_open_files_is_raised(sshd: Sshd) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        host_at(sshd).use(lambda t: t.run(["true"]))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
