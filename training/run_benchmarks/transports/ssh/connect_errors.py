"""Say why a host was not reached, and what to type next."""

from __future__ import annotations

import asyncio
import errno
import re
import shlex
import socket

import asyncssh

from run_benchmarks.transports.base import HostKeyError, TransportError
from run_benchmarks.transports.ssh.options import Login
from run_benchmarks.transports.ssh.trust import DEFAULT_PORT, Refusal, RefusalReason

UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


def ssh_command(login: Login) -> str:
    """What a user types to log in to the host by hand."""
    address = login.address
    port = ["-p", str(address.port)] if address.port not in (None, DEFAULT_PORT) else []
    return shlex.join(["ssh", *port, f"{address.user}@{address.host}" if address.user else address.host])


def explain(login: Login, error: BaseException, refusal: Refusal | None, timeout_s: float) -> TransportError:
    """The error for the user; `refusal` is the host key that was refused while connecting, if one was."""
    if refusal is not None:
        return _refused_key(login, refusal)
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        message = f"its host key or certificate is not trusted: {error.reason}"
        return _error(
            login, HostKeyError, message, f"see {_files(login)}, and the certificate's expiry and names"
        )
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return _timed_out(login, timeout_s)
    if isinstance(error, asyncssh.PermissionDenied):
        return _denied(login)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        message = f"{_place(login)} and this machine have no algorithm in common: {error.reason}"
        return _error(
            login, TransportError, message, f"update its ssh server; compare `{ssh_command(login)} -v`"
        )
    if isinstance(error, asyncssh.DisconnectError):
        return _dropped(login, error)
    if isinstance(error, OSError):
        return _os_error(login, error)
    return _error(login, TransportError, f"cannot log in: {error}", f"try `{ssh_command(login)}`")


def bad_configuration(host: str, error: Exception) -> TransportError:
    """The ssh configuration itself is wrong."""
    return TransportError(
        f"the ssh configuration is wrong: {error}", where=host, remedy="correct ~/.ssh/config"
    )


def _error(login: Login, kind: type[TransportError], message: str, remedy: str) -> TransportError:
    return kind(message, where=login.address.host, remedy=remedy)


def _place(login: Login) -> str:
    return f"{login.hostname} port {login.port}"


def _timed_out(login: Login, timeout_s: float) -> TransportError:
    return _error(
        login,
        TransportError,
        f"no answer from {_place(login)} within {timeout_s:g} s: down, cut off, behind a firewall, or hung",
        f"check that the host is up: `{ssh_command(login)}`; for a slow network raise SSH_CONNECT_TIMEOUT",
    )


def _denied(login: Login) -> TransportError:
    keys = ", ".join(login.identities) or "~/.ssh/id_* (those that are there and not encrypted)"
    agent = f"the agent at {login.agent}" if login.agent else "no agent (SSH_AUTH_SOCK is not set)"
    return _error(
        login,
        TransportError,
        f"{login.user} may not log in to {_place(login)}: no key was accepted; tried {keys}; {agent}",
        f"`{_with('ssh-copy-id', login)}`, or for an encrypted key `ssh-add`; "
        f"then `{_with('ssh -o BatchMode=yes', login)} true` must work",
    )


def _with(command: str, login: Login) -> str:
    return ssh_command(login).replace("ssh", command, 1)


def _dropped(login: Login, error: asyncssh.DisconnectError) -> TransportError:
    return _error(
        login,
        TransportError,
        f"{_place(login)} closed the connection during login: {error.reason}",
        f"try `{ssh_command(login)}`; see its sshd log (MaxStartups, AllowUsers, fail2ban)",
    )


def _os_error(login: Login, error: OSError) -> TransportError:
    if isinstance(error, socket.gaierror):
        message = f"the name {login.hostname} is not known: {error.strerror}"
        return _error(
            login, TransportError, message, "correct the name in cluster_conf.py, or use its address"
        )
    numbers = {int(number) for number in re.findall(r"\[Errno (\d+)]", str(error))}
    if numbers == {errno.ECONNREFUSED}:
        message = f"{_place(login)} refuses connections: no ssh server listens there"
        return _error(
            login, TransportError, message, "start sshd on it, or correct SSH_PORT in cluster_conf.py"
        )
    if numbers and numbers <= set(UNREACHABLE):
        message = f"there is no route to {_place(login)}: {error.strerror or error}"
        return _error(
            login, TransportError, message, "check the address, the network and that the host is up"
        )
    return _error(
        login, TransportError, f"cannot connect to {_place(login)}: {error}", f"try `{ssh_command(login)}`"
    )


def _refused_key(login: Login, refusal: Refusal) -> HostKeyError:
    key = f"{refusal.algorithm} key {refusal.fingerprint}"
    file = login.known_hosts.files[0]
    if refusal.reason is RefusalReason.CHANGED:
        message = (
            f"ITS HOST KEY HAS CHANGED: it shows the {key}, known_hosts holds another for {refusal.name}. "
            "Either it was reinstalled, or someone is listening in"
        )
        remedy = f"if you know that it was reinstalled: `{_forget(login)}`, then `{ssh_command(login)}` once"
    else:
        message = f"its {key} is not known: {refusal.name} is not in {file}"
        remedy = (
            f"compare the fingerprint with the host's own, then accept it: `{ssh_command(login)}` once, or "
            f"`{_keyscan(login)} >> {file}`; or set SSH_ACCEPT_NEW_HOST_KEYS = True in cluster_conf.py"
        )
    return HostKeyError(message, where=login.address.host, remedy=remedy)


def _files(login: Login) -> str:
    return ", ".join(str(file) for file in login.known_hosts.files if file.exists()) or "known_hosts"


def _keyscan(login: Login) -> str:
    port = ["-p", str(login.port)] if login.port != DEFAULT_PORT else []
    return shlex.join(["ssh-keyscan", *port, login.hostname])


def _forget(login: Login) -> str:
    return shlex.join(["ssh-keygen", "-f", str(login.known_hosts.files[0]), "-R", login.known_name])
