"""How a host is reached: what cluster_conf says, then the user's ssh configuration, as ssh would read it."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.config import SSHConfig

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports.base import TransportError
from run_benchmarks.transports.ssh.keys import key_pairs
from run_benchmarks.transports.ssh.trust import GLOBAL_FILES, USER_FILES, KnownHosts, known_name

# A cut or frozen host is noticed after (3 + 1) x 2.5 s = 10 s.
KEEPALIVE_INTERVAL_S = 2.5
KEEPALIVE_COUNT = 3
# The default of recent servers and clients, sntrup761 or mlkem768, costs a client tens of milliseconds of
# CPU a connection; with hundreds of hosts that counts. Everything else stays allowed.
KEY_EXCHANGE = "^curve25519-sha256,curve25519-sha256@libssh.org"
# Images are streamed to the hosts: measured on two cores, 170 to 216 MB/s with this one, 67 to 85 with the
# default, chacha20-poly1305.
CIPHERS = "^aes128-gcm@openssh.com"
OWN_CONFIG, SYSTEM_CONFIG = "~/.ssh/config", "/etc/ssh/ssh_config"


@dataclass(frozen=True)
class Address:
    """A host to log in to, as the user named it; None leaves a value to the ssh configuration."""

    host: str
    port: int | None = None
    user: str | None = None

    @classmethod
    def parse(cls, jump: str) -> Address:
        """An entry of ProxyJump: `[user@]host[:port]`, the host perhaps in brackets."""
        user, _, rest = jump.strip().removeprefix("ssh://").rpartition("@")
        match = re.fullmatch(r"\[(?P<v6>[^]]+)](?::(?P<p6>\d+))?|(?P<host>[^:]+)(?::(?P<port>\d+))?", rest)
        if not match:
            raise ValueError(f"ProxyJump {jump!r}: not of the form [user@]host[:port]")
        port = match["p6"] or match["port"]
        return cls(match["v6"] or match["host"], int(port) if port else None, user or None)


@dataclass(frozen=True)
class Login:
    """A host's address with the ssh configuration applied.

    known_name: what known_hosts calls it. jumps: the hosts to go through, in order.
    identities: the configured key files that are there.
    """

    address: Address
    hostname: str
    port: int
    user: str
    known_name: str
    jumps: tuple[Address, ...]
    identities: tuple[str, ...]
    agent: str
    known_hosts: KnownHosts
    keyword_options: dict[str, Any]


def resolve(address: Address, cluster: ClusterSettings) -> Login:
    """Apply the ssh configuration to `address`. Blocks: it reads files, and `Match exec` runs commands.

    Raises:
        ValueError: the configuration has an error; file and line are named.
        TransportError: this user has no name or no home folder.
    """
    _assert_somebody(address.host)
    chosen: dict[str, Any] = {"config": _config_files(), "host": address.host, "known_hosts": b""}
    if address.port is not None:
        chosen["port"] = address.port
    if address.user is not None:
        chosen["username"] = address.user
    # Without keys at first: a key file that is configured and missing is normal, but an error to asyncssh.
    seen = asyncssh.SSHClientConnectionOptions(**chosen, client_keys=None)
    config = seen.config
    identities = _present(config.get("IdentityFile") or ())
    known_hosts = KnownHosts(_known_hosts_files(address.host, seen))
    name = seen.host_key_alias or known_name(seen.host, seen.port)
    options: dict[str, Any] = {
        **chosen,
        "known_hosts": known_hosts.match,
        "keepalive_interval": KEEPALIVE_INTERVAL_S,
        "keepalive_count_max": KEEPALIVE_COUNT,
        "connect_timeout": cluster.ssh_connect_timeout_s,
        "login_timeout": 0,  # connect_timeout holds for all of it
        # nobody is there to answer a question
        "password_auth": False,
        "kbdint_auth": False,
        "agent_forwarding": False,  # a node could log in anywhere with the user's keys, and needs none
        "client_keys": _keys(identities, config),
        "ignore_encrypted": True,
        "x509_trusted_certs": None,
    }
    if chosen["config"] and not (seen.canonicalize_hostname or config.has_match_final()):
        # what is read again by no other name of the host is not read again: that takes longer than a command
        options.update(options=seen, config=())
    if config.get("IdentitiesOnly") and identities:
        options["agent_identities"] = _present(f"{path}.pub" for path in identities) or None
    if not config.get("HostKeyAlgorithms"):
        options["server_host_key_algs"] = known_hosts.algorithms(seen.host_key_alias or seen.host, seen.port)
    if not config.get("KexAlgorithms"):
        options["kex_algs"] = KEY_EXCHANGE
    if not config.get("Ciphers"):
        options["encryption_algs"] = CIPHERS
    if not config.get("Compression"):
        # as ssh does without it; what a host would have unpacked here has no bound before it is unpacked
        options["compression_algs"] = ["none"]
    return Login(
        address=address,
        hostname=seen.host,
        port=seen.port,
        user=seen.username,
        known_name=name,
        jumps=_jumps(seen.tunnel),
        identities=tuple(identities),
        agent=_agent(config),
        known_hosts=known_hosts,
        keyword_options=options,
    )


def _assert_somebody(host: str) -> None:
    """That this user has a name and a home: in a container that was started with a number for one he may have none."""
    try:
        getpass.getuser()
        Path.home()
    except (KeyError, OSError, RuntimeError):
        message = f"ssh cannot be used: the user with the number {os.getuid()} has no name or no home here"
        remedy = (
            "set USER to the name to log in by, and HOME to the folder whose .ssh has keys and known_hosts"
        )
        raise TransportError(message, where=host, remedy=remedy) from None


def _config_files() -> list[Path]:
    paths = (Path(name).expanduser() for name in (OWN_CONFIG, SYSTEM_CONFIG))
    files = [path for path in paths if os.access(path, os.R_OK)]
    for path in files:
        _ConfigFiles(None, reload=False, canonical=False, final=False).parse(path)
    return files


class _ConfigFiles(SSHConfig):
    """A configuration as asyncssh reads it, but for settings: each file, whichever host it is included for.

    asyncssh has no public way to see what a configuration includes; training/requirements.txt bounds its version.
    """

    _conditionals = SSHConfig._conditionals - {"match"}  # nothing is executed here, and nothing passed over
    _handlers = SSHConfig._handlers | {"include": ("Include", SSHConfig._include)}

    def parse(self, path: Path) -> None:
        """Look at a file, and then at those that it includes.

        Raises:
            ValueError: others may write to one, or it cannot be read.
        """
        if path != Path(SYSTEM_CONFIG):  # ssh does not look at whose that one is, either
            _assert_ours(path)
        try:
            super().parse(path)
        except RuntimeError as error:  # a home that nobody has, or a file that includes itself
            self._error(str(error))

    def _set_tokens(self) -> None:
        """None are needed: what is included is named without."""


def _assert_ours(path: Path) -> None:
    """That nobody else can write into a file: as this user its commands are executed.

    Raises:
        ValueError: somebody can, or owns it; ssh refuses that, too.
    """
    state = path.stat()
    if state.st_uid not in (0, os.getuid()) or state.st_mode & 0o022:
        raise ValueError(
            f"{path} may be written by others: let it belong to you or root, and `chmod go-w {path}`"
        )


def _present(names: Any) -> list[str]:
    paths = (_at(name) for name in names)
    return [str(path) for path in paths if os.access(path, os.R_OK)]


def _keys(identities: list[str], config: Any) -> Sequence[Any]:
    """The keys to log in with; as files where asyncssh chooses among them by the host's own settings."""
    chooses = config.get("IdentitiesOnly") or config.get("CertificateFile")
    if chooses or (config.get("IdentityFile") and not identities):
        return identities or ()
    with suppress(OSError, ValueError):  # the login says what is wrong with a file
        # none would mean those of the usual names, which a host with keys of its own is not offered
        return key_pairs(identities) or identities or ()
    return identities or ()


def _at(name: str) -> Path:
    """The path of a setting; ValueError where it begins with a home that nobody has."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise ValueError(f"{name}: nobody here has such a home") from None


def _jumps(tunnel: object) -> tuple[Address, ...]:
    return tuple(Address.parse(part) for part in tunnel.split(",")) if isinstance(tunnel, str) else ()


def _agent(config: Any) -> str:
    configured = config.get("IdentityAgent")
    return str(_at(configured)) if configured else os.environ.get("SSH_AUTH_SOCK", "")


def _known_hosts_files(name: str, options: asyncssh.SSHClientConnectionOptions) -> tuple[Path, ...]:
    tokens = {
        "%": "%",
        "d": str(Path.home()),
        "h": options.host,
        "n": name,
        "p": str(options.port),
        "r": options.username,
        "u": getpass.getuser(),
        "k": options.host_key_alias or options.host,
    }
    config: Any = options.config
    # `none` means no file, and not, as to asyncssh, no check
    names: Sequence[str] = [
        *(config.get("UserKnownHostsFile") or USER_FILES),
        *(config.get("GlobalKnownHostsFile") or GLOBAL_FILES),
    ]
    return tuple(_at(_expand(name, tokens)) for name in names)


def _expand(name: str, tokens: dict[str, str]) -> str:
    """ssh_config's tokens (%d, %h ...) and ${VARIABLES}; asyncssh leaves them alone in this setting."""
    named = re.sub(r"\$\{(\w+)}", lambda match: os.environ.get(match[1], ""), name)
    return re.sub(r"%(.)", lambda match: tokens.get(match[1], match[0]), named)
