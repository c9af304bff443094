"""The floor of a log-in: asyncssh by itself, with the product's algorithms, the host's key checked, one command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import asyncssh

from run_benchmarks.transports.ssh.connect import CONCURRENT_CONNECTS
from run_benchmarks.transports.ssh.options import CIPHERS, KEY_EXCHANGE


async def log_in_bare(names: Sequence[str], port: int, home: Path) -> None:
    """Log in to all hosts and run `true` there; keys and known_hosts in `home` are read once, and no configuration."""
    known_hosts = asyncssh.read_known_hosts(str(home / ".ssh/known_hosts"))
    key = asyncssh.read_private_key(home / ".ssh/id_ed25519")
    places = asyncio.Semaphore(CONCURRENT_CONNECTS)

    async def log_in(name: str) -> asyncssh.SSHClientConnection:
        async with places:
            connection = await asyncssh.connect(
                name,
                port,
                config=None,
                username="root",
                client_keys=[key],
                agent_path=None,
                known_hosts=lambda host, _, port: known_hosts.match(host, "", port),
                kex_algs=KEY_EXCHANGE,
                encryption_algs=CIPHERS,
                compression_algs=["none"],
                x509_trusted_certs=None,
            )
            process = await connection.create_process("true", encoding=None, request_pty=False)
            process.stdin.write_eof()
            await process.wait_closed()
            return connection

    for connection in await asyncio.gather(*map(log_in, names)):
        connection.abort()
