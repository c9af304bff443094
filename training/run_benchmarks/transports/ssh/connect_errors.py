"""Say why a host was not reached, and what to type next."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shlex
import socket

import asyncssh

from run_benchmarks.transports.base import AuthenticationError, HostKeyError, PassingError, TransportError
from run_benchmarks.transports.ssh.options import Login
from run_benchmarks.transports.ssh.trust import DEFAULT_PORT, Refusal

UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN}


def ssh_command(login: Login) -> str:
    """What a user types to log in to the host by hand."""
    address = login.address
    port = ["-p", str(address.port)] if address.port not in (None, DEFAULT_PORT) else []
    return shlex.join(["ssh", *port, f"{address.user}@{address.host}" if address.user else address.host])


def explain(
    login: Login, error: BaseException, refusal: Refusal | None, timeout_s: float, *, is_open: bool
) -> TransportError:
    """The error for the user.

    Args:
        refusal: the host key that was refused while connecting, if one was.
        is_open: whether the host had taken the TCP connection.
    """
    message, remedy = _of_key(login, refusal) if refusal else _of(login, error, timeout_s, is_open)
    return _kind(error, refusal)(message, where=login.address.host, remedy=remedy)


def _kind(error: BaseException, refusal: Refusal | None) -> type[TransportError]:
    if refusal is not None or isinstance(error, asyncssh.HostKeyNotVerifiable):
        return HostKeyError
    if isinstance(error, asyncssh.PermissionDenied) or "authentication failures" in str(error):
        return AuthenticationError
    if isinstance(error, socket.gaierror):
        return PassingError if error.errno == socket.EAI_AGAIN else TransportError
    # sshd that is started anew, or has as many log-ins under way as it takes (MaxStartups)
    if isinstance(error, (asyncssh.ConnectionLost, ConnectionError)) or _numbers(error) & {
        errno.ECONNREFUSED
    }:
        return PassingError
    return TransportError


def bad_configuration(host: str, error: Exception) -> TransportError:
    """The ssh configuration itself is wrong."""
    return TransportError(
        f"the ssh configuration is wrong: {error}", where=host, remedy="correct ~/.ssh/config"
    )


def _of(login: Login, error: BaseException, timeout_s: float, is_open: bool) -> tuple[str, str]:
    """What happened, and what to do next."""
    place, command = f"{login.hostname} port {login.port}", ssh_command(login)
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return (
            f"its host key or certificate is not trusted: {error.reason}",
            f"see {_files(login)}, and the certificate's expiry and names",
        )
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return _of_silence(login, place, timeout_s, is_open)
    if isinstance(error, asyncssh.PermissionDenied):
        return _of_denial(login, place)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return (
            f"{place} and this machine have no algorithm in common: {error.reason}",
            f"update its ssh server; compare `{command} -v`",
        )
    if isinstance(error, (asyncssh.DisconnectError, ConnectionResetError)):  # a reset may overtake its reason
        reason = error.reason if isinstance(error, asyncssh.DisconnectError) else error.strerror
        return (
            f"{place} closed the connection during login: {reason}",
            f"try `{command}`; see its sshd log (MaxStartups, AllowUsers, fail2ban)",
        )
    if isinstance(error, OSError):
        return _of_network(login, place, error)
    return f"cannot log in: {error}", f"try `{command}`"


def _of_silence(login: Login, place: str, timeout_s: float, is_open: bool) -> tuple[str, str]:
    slow = f"for a slow network raise SSH_CONNECT_TIMEOUT; by hand: `{ssh_command(login)}`"
    if is_open:
        return (
            f"{place} takes a TCP connection and lets nobody in within {timeout_s:g} s: it, or its ssh server, hangs",
            f"see at its console, or by its BMC, whether it swaps, waits for a disk or is frozen; {slow}",
        )
    return (
        f"no answer from {place} within {timeout_s:g} s, not even to TCP: it is down, cut off, or behind a firewall",
        f"see by its BMC whether it is up, then its cable and the network; {slow}",
    )


def _of_denial(login: Login, place: str) -> tuple[str, str]:
    keys = ", ".join(login.identities) or "~/.ssh/id_* (those that are there and not encrypted)"
    agent = f"the agent at {login.agent}" if login.agent else "no agent (SSH_AUTH_SOCK is not set)"
    return (
        f"{place} does not let the user {login.user!r} in: no key was accepted; tried {keys}; {agent}",
        f"`{_with('ssh-copy-id', login)}`, or for an encrypted key `ssh-add`; "
        f"then `{_with('ssh -o BatchMode=yes', login)} true` must work",
    )


def _of_network(login: Login, place: str, error: OSError) -> tuple[str, str]:
    if isinstance(error, socket.gaierror):
        message = f"the name {login.hostname} is not known: {error.strerror}"
        return message, "correct the name in cluster_conf.py, or use its address"
    numbers = _numbers(error)
    if numbers == {errno.ECONNREFUSED}:
        message = f"{place} refuses connections: no ssh server listens there"
        return message, "start sshd on it, or correct SSH_PORT in cluster_conf.py"
    if numbers and numbers <= UNREACHABLE:
        message = f"there is no route to {place}: {', '.join(map(os.strerror, sorted(numbers)))}"
        return message, "check the address, the network and that the host is up"
    why = ", ".join(map(os.strerror, sorted(numbers))) or error  # asyncio's own words are tuples
    return f"cannot connect to {place}: {why}", f"try `{ssh_command(login)}`"


def _numbers(error: BaseException) -> set[int]:
    """Those of an error's addresses: asyncio puts several into the text of one error, which has none itself."""
    return {int(number) for number in re.findall(r"\[Errno (\d+)]", str(error))}


def _of_key(login: Login, refusal: Refusal) -> tuple[str, str]:
    key, file = f"{refusal.algorithm} key {refusal.fingerprint}", login.known_hosts.files[0]
    if refusal.changed:
        return (
            f"ITS HOST KEY HAS CHANGED: it shows the {key}, known_hosts holds another for {refusal.name}. "
            "Either it was reinstalled, or someone is listening in",
            f"if you know that it was reinstalled: `{_forget(login)}`, then `{ssh_command(login)}` once",
        )
    return (
        f"its {key} is not known: {refusal.name} is not in {file}",
        f"compare the fingerprint with the host's own, then accept it: `{ssh_command(login)}` once, or "
        f"`{_keyscan(login)} >> {file}`; or set SSH_ACCEPT_NEW_HOST_KEYS = True in cluster_conf.py",
    )


def _with(command: str, login: Login) -> str:
    return ssh_command(login).replace("ssh", command, 1)


def _files(login: Login) -> str:
    return ", ".join(str(file) for file in login.known_hosts.files if file.exists()) or "known_hosts"


def _keyscan(login: Login) -> str:
    port = ["-p", str(login.port)] if login.port != DEFAULT_PORT else []
    return shlex.join(["ssh-keyscan", *port, login.hostname])


def _forget(login: Login) -> str:
    return shlex.join(["ssh-keygen", "-f", str(login.known_hosts.files[0]), "-R", login.known_name])
