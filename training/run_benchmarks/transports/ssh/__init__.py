"""The ssh transport: commands on another host, by asyncssh, under the user's own ssh configuration."""

from __future__ import annotations

import asyncio

import asyncssh

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import ByteSink, ByteSource, Tail, Transport, TransportError
from run_benchmarks.transports.ssh.connect import connector
from run_benchmarks.transports.ssh.options import Address
from run_benchmarks.transports.ssh.remote import RemoteCommand, end_command, start_command
from run_benchmarks.transports.ssh.sessions import Carrier, Sessions
from run_benchmarks.transports.streams import collect, exchange, feed
from run_benchmarks.transports.time_limit import within
from run_benchmarks.transports.together import Together

MOST_REFUSALS = 20
REFUSAL_PAUSE_S = 0.05
END_TIMEOUT_S = 8.0  # for ending a command on a host: two seconds of grace, and a slow network


class SshTransport(Transport):
    """One host. It is connected to when first used, and again when a connection was lost.

    A command that was under way when contact was lost is never repeated: whether it ran is not known.
    """

    def __init__(self, host: str, cluster: ClusterSettings) -> None:
        super().__init__(host)
        self._cluster = cluster
        self._address = Address(host, cluster.ssh_port, cluster.ssh_user)
        self._sessions = Sessions(host, self._connect)
        self._registered = False

    async def open(self) -> None:
        """Connect, where there is no connection."""
        async with self._sessions.session():
            pass

    async def reach(self) -> None:
        """Connect once more."""
        (await self._connect()).close()

    def together(self) -> Transport:
        """The same host; commands of one moment share a session."""
        return Together(self)

    async def host_key(self) -> tuple[str, str] | None:
        """As ssh names them: `ssh-ed25519`, `SHA256:...`."""
        async with self._sessions.session() as carrier:
            key = carrier.connection.get_server_host_key()
        return (key.get_algorithm(), key.get_fingerprint()) if key else None

    async def close(self) -> None:
        """Close the connections."""
        await self._sessions.close()
        if self._registered:
            self._registered = False
            connector().release()

    async def _connect(self) -> asyncssh.SSHClientConnection:
        if not self._registered:
            self._registered = True
            connector().register()
        return await connector().connect(self._address, self._cluster)

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        for _ in range(MOST_REFUSALS):
            async with self._sessions.session() as carrier:
                try:
                    return await self._run_on(carrier, argv, stdin, stdout)
                except asyncssh.ChannelOpenError as error:
                    # Refused before it began, so it may be tried again. sshd counts a session that has just ended
                    # for a moment still, so one refusal says little.
                    refusal = error
                    carrier.note_refusal()
            await asyncio.sleep(REFUSAL_PAUSE_S)
        raise self._lost(f"it opens no session: {refusal.reason}")

    async def _run_on(
        self,
        carrier: Carrier,
        argv: tuple[str, ...],
        stdin: ByteSource | None,
        stdout: ByteSink,
    ) -> tuple[int, str]:
        starting = asyncio.ensure_future(start_command(carrier.connection, argv, self.host))
        errors = Tail()
        try:
            command = await asyncio.shield(starting)
            process = command.process
            await exchange(
                feed(process.stdin, stdin or b""),
                collect(process.stdout, stdout),
                collect(process.stderr, errors.take),
                process.wait_closed(),
            )
        except asyncssh.ChannelOpenError:
            raise
        except asyncio.CancelledError:
            await asyncio.shield(_end(carrier, starting))
            raise
        except Exception as error:
            # an error of the caller's own (of its stdin, its sink) is not one of the connection
            if isinstance(error, asyncssh.Error) or carrier.connection.is_closed():
                raise self._lost(str(error)) from error
            await asyncio.shield(_end(carrier, starting))
            raise
        if process.returncode is None:
            raise self._lost("the connection was closed")
        return process.returncode, errors.text

    def _lost(self, reason: str) -> TransportError:
        return TransportError(
            f"contact was lost: {reason}", where=self.host, remedy="check the host and the network; run again"
        )


async def _end(carrier: Carrier, starting: asyncio.Future[RemoteCommand]) -> None:
    """End the command on the host; where the host does not answer any more there is nothing to be done."""

    async def ending() -> None:
        command = await starting
        await end_command(carrier.connection, command)
        command.process.close()

    try:
        await within(ending(), END_TIMEOUT_S)
    except (asyncio.TimeoutError, asyncssh.Error, OSError, TransportError):
        return
