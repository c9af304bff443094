"""Open connections to hosts: through their jump hosts, so many at once, with their keys verified."""

from __future__ import annotations

import asyncio
import resource
from weakref import WeakKeyDictionary

import asyncssh

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.transports.backoff import with_backoff
from run_benchmarks.transports.base import PassingError
from run_benchmarks.transports.ssh.connect_errors import bad_configuration, explain
from run_benchmarks.transports.ssh.options import Address, Login, resolve
from run_benchmarks.transports.ssh.trust import Refusal

CONCURRENT_CONNECTS = 64
MOST_OPEN_FILES = 65536
LONGEST_JUMP_CHAIN = 8
# Between attempts to log in to a host that is there and took no connection: its sshd is started anew within these.
PAUSES_S = (0.5, 1.0, 2.0)


class Connector:
    """What all hosts of a process share: the bound on simultaneous log-ins, and the jump hosts' connections.

    A bastion in front of a thousand hosts gets one connection, not a thousand (sshd drops log-ins beyond
    MaxStartups, ten by default).
    """

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(CONCURRENT_CONNECTS)
        self._jumps: dict[tuple[Address, ...], asyncio.Task[asyncssh.SSHClientConnection]] = {}
        self._sought: set[Address] = set()  # and not there since: of each one warning is enough
        self._users = 0
        _raise_file_limit()

    def register(self) -> None:
        """One more transport uses this."""
        self._users += 1

    def release(self) -> None:
        """One transport fewer; with the last one the jump hosts' connections are closed."""
        self._users -= 1
        if self._users == 0:
            for jump in self._jumps.values():
                jump.cancel()
                if jump.done() and not jump.cancelled() and not jump.exception():
                    jump.result().close()
            self._jumps.clear()

    async def connect(
        self,
        address: Address,
        cluster: ClusterSettings,
        through: asyncssh.SSHClientConnection | None = None,
        chain: tuple[Address, ...] = (),
    ) -> asyncssh.SSHClientConnection:
        """A fresh connection, logged in; `chain` is what is on its way to be reached through this one.

        Raises:
            TransportError: the host, or a jump host on the way, was not reached or did not let us in.
            HostKeyError: its key is not trusted.
        """
        try:
            login = await asyncio.get_running_loop().run_in_executor(None, resolve, address, cluster)
        except (ValueError, OSError) as error:
            raise bad_configuration(address.host, error) from error
        tunnel = through or await self._tunnel(login, cluster, (*chain, address))

        async def log_in() -> asyncssh.SSHClientConnection:
            async with self._places:
                return await _log_in(login, cluster, tunnel)

        levels = ("DEBUG", "DEBUG") if address in self._sought else ("WARNING", "INFO")
        self._sought.add(address)
        connection = await with_backoff(
            log_in, PAUSES_S, lambda error: isinstance(error, PassingError), levels
        )
        self._sought.discard(address)
        return connection

    async def _tunnel(
        self, login: Login, cluster: ClusterSettings, chain: tuple[Address, ...]
    ) -> asyncssh.SSHClientConnection | None:
        """The connection through which the host is reached; None where that is directly."""
        tunnel = None
        for count in range(1, len(login.jumps) + 1):
            hop = login.jumps[count - 1]
            if hop in chain or len(chain) > LONGEST_JUMP_CHAIN:
                raise bad_configuration(
                    login.address.host, ValueError(f"ProxyJump {hop.host} leads in a circle")
                )
            tunnel = await self._jump(login.jumps[:count], cluster, tunnel, chain)
        return tunnel

    async def _jump(
        self,
        hops: tuple[Address, ...],
        cluster: ClusterSettings,
        through: asyncssh.SSHClientConnection | None,
        chain: tuple[Address, ...],
    ) -> asyncssh.SSHClientConnection:
        """The shared connection to the last of `hops`; opened anew where there is none that lives."""
        jump = self._jumps.get(hops)
        if jump is None or _is_over(jump):
            jump = asyncio.ensure_future(self.connect(hops[-1], cluster, through, chain))
            self._jumps[hops] = jump
        return await asyncio.shield(jump)


def connector() -> Connector:
    """The connector of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _CONNECTORS:
        _CONNECTORS[loop] = Connector()
    return _CONNECTORS[loop]


_CONNECTORS: WeakKeyDictionary[asyncio.AbstractEventLoop, Connector] = WeakKeyDictionary()


async def _log_in(
    login: Login, cluster: ClusterSettings, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    gate = _Gate(login, cluster.ssh_accept_new_host_keys)
    try:
        return await asyncssh.connect(**login.keyword_options, tunnel=tunnel, client_factory=lambda: gate)
    except (asyncio.TimeoutError, OSError, asyncssh.Error, ValueError) as error:
        timeout_s = cluster.ssh_connect_timeout_s
        raise explain(login, error, gate.refusal, timeout_s, is_open=gate.is_open) from error


class _Gate(asyncssh.SSHClient):
    """Decides about a host key that known_hosts does not vouch for, and sees how far a connection comes."""

    def __init__(self, login: Login, accept_new: bool) -> None:
        self._login = login
        self._accept_new = accept_new
        self.refusal: Refusal | None = None
        self.is_open = False

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """The host has taken the TCP connection; it has said nothing yet."""
        self.is_open = True

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Accept a new key where that is the setting; refuse a changed one always."""
        login = self._login
        if login.known_hosts.revokes(login.known_name, key):
            raise ValueError(
                "Host key is revoked"
            )  # as asyncssh itself says of one that is revoked with the port
        changed = login.known_hosts.has_key_of(login.known_name)
        algorithm, fingerprint = key.get_algorithm(), key.get_fingerprint()
        if self._accept_new and not changed:
            login.known_hosts.add(login.known_name, key)
            LOGGER.warning(f"{login.address.host}: accepted its {algorithm} key {fingerprint} on first use")
            return True
        self.refusal = Refusal(changed, login.known_name, algorithm, fingerprint)
        return False


def _is_over(jump: asyncio.Task[asyncssh.SSHClientConnection]) -> bool:
    if not jump.done():
        return False
    return jump.cancelled() or jump.exception() is not None or jump.result().is_closed()


def _raise_file_limit() -> None:
    """A connection a host takes a file each; the usual soft limit, 1024, is below what is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
