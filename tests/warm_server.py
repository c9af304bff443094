"""A process that has imported what it was told to, and whose forks run scripts as Python would; see warm_python.py.

python warm_server.py SOCKET MODULE...     until its standard input ends
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """What a rank was asked to run, the folders of its Python's own packages, and its standard streams."""

    argv: list[str]
    environment: dict[str, str]
    folder: str
    packages: list[str]
    streams: list[int]

    def run(self) -> None:
        """As Python would, in this process."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv[:] = [word for word in self.argv if word != "-u"]
        paths = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:1] = [str(Path(sys.argv[0]).resolve().parent), *filter(None, paths)]
        sys.path += self.packages
        runpy.run_path(sys.argv[0], run_name="__main__")


@dataclass(frozen=True)
class Fork:
    """A fork and the executable that waits for its end."""

    pid: int
    connection: socket.socket


class Server:
    """Forks for whoever connects, and tells each how its fork ended."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)

    def serve(self) -> Job | None:
        """Returns in every fork, with its job; in the server itself when its standard input has ended, with None."""
        while True:
            key, _ = self._selector.select()[0]  # one at a time, for it may make another's void
            if key.fileobj is sys.stdin:
                return None
            if key.fileobj is self._listener:
                job = self._forked(self._listener.accept()[0])
                if job is not None:
                    return job
            elif key.fileobj is key.data.connection:  # the executable was killed
                self._selector.unregister(key.fileobj)
                os.kill(key.data.pid, signal.SIGKILL)
            else:
                self._ended(key)

    def _forked(self, connection: socket.socket) -> Job | None:
        """The job, in the fork."""
        first, streams, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as rest:
            job = Job(*json.loads(first + rest.readline()), streams)
        pid = os.fork()
        if not pid:
            self._selector.close()
            self._listener.close()
            connection.close()
            return job
        for stream in streams:
            os.close(stream)
        connection.sendall(b"%d\n" % pid)
        for watched in (connection, os.pidfd_open(pid)):
            self._selector.register(watched, selectors.EVENT_READ, Fork(pid, connection))
        return None

    def _ended(self, key: selectors.SelectorKey) -> None:
        fork: Fork = key.data
        self._selector.unregister(key.fileobj)
        os.close(key.fd)
        code = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
        with suppress(KeyError):  # the executable was killed before
            self._selector.unregister(fork.connection)
        with fork.connection, suppress(BrokenPipeError):
            fork.connection.sendall(b"%d\n" % code)


def main(address: str, *modules: str) -> None:
    """Serve; in a fork, run what it is for."""
    for name in modules:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        job = Server(listener).serve()
    if job is not None:
        job.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
