"""Give one file from a node to another: by TLS, to who knows a token, once.

    python3 -I -c BOOT <a line with the number of bytes of this: this file, and a last line that calls serve or fetch>

`serve` prints the port that it listens on. Neither believes the other: who fetches knows the certificate, the size and
the SHA-256 of what it shall get, who serves the token. Both end with their standard input, which is the controller's,
and where they wait in vain. Standard library, Python 3.8 or later.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import queue
import signal
import socket
import ssl
import sys
import threading
from contextlib import suppress

BOOT = "import sys; exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
CHUNK = 2**18
CONNECT_S = 5.0
WAIT_S = 30.0  # so long nobody need come
STRANGER_S = 5.0  # so long somebody who connects may take to say the token
MOST_STRANGERS = 64  # at once
# A peer that is slower than this is given up: 1 MiB a second, looked at each time that so much has passed.
STEP, STEP_S = 32 * 2**20, 32


def serve(path: str, identity: str, token: str) -> None:
    """Send the file to the first who says the token.

    Args:
        identity: the certificate and its key, PEM.
    """
    _end_with_input()
    context = _as_server(identity)
    peers: queue.Queue[ssl.SSLSocket] = queue.Queue(1)
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen(MOST_STRANGERS)
        print(listener.getsockname()[1], flush=True)
        threading.Thread(target=_listen, args=(listener, context, token.encode(), peers), daemon=True).start()
        try:
            peer = peers.get(timeout=WAIT_S)
        except queue.Empty:
            sys.exit("nobody came for the file")
        listener.shutdown(socket.SHUT_RDWR)  # who waits for further ones would keep it open
    with peer, open(path, "rb") as file:  # noqa: PTH123 - as short as it may be
        moved = _Moved()
        for chunk in iter(lambda: file.read(CHUNK), b""):
            peer.sendall(chunk)
            moved.by(len(chunk))
        peer.recv(1)  # it has all, and closes: what closes first may cut off what is on its way


def fetch(address: str, port: int, certificate: str, token: str, path: str, size: int, sha256: str) -> None:
    """Get the file of `size` bytes from who has the certificate (PEM), and make `path` of it, which must not be there.

    Where it ends with an error nothing of the file is left.
    """
    _end_with_input()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # it is compared itself, which needs no name, no authority and no clock
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    os.umask(0o077)
    moved = _Moved()
    with socket.create_connection((address, port), CONNECT_S) as plain, context.wrap_socket(plain) as peer:
        if peer.getpeercert(binary_form=True) != ssl.PEM_cert_to_DER_cert(certificate):
            sys.exit(f"{address} port {port} is somebody else")
        peer.settimeout(None)
        peer.sendall(token.encode())
        with open(path, "xb") as file:  # noqa: PTH123 - follows no link
            try:
                digest = hashlib.sha256()
                while file.tell() < size:
                    chunk = peer.recv(min(CHUNK, size - file.tell()))
                    if not chunk:
                        sys.exit(f"{address} broke off after {file.tell()} of {size} bytes")
                    digest.update(chunk)
                    file.write(chunk)
                    moved.by(len(chunk))
                if digest.hexdigest() != sha256:
                    sys.exit(f"{address} sent other bytes than it was given")
            except BaseException:
                os.unlink(path)  # noqa: PTH108
                raise


class _Moved:
    """Ends the program where the next STEP bytes, or what comes before the first of them, take longer than STEP_S."""

    def __init__(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: sys.exit("the peer is too slow"))
        self._bytes = 0
        signal.alarm(STEP_S)

    def by(self, count: int) -> None:
        """So many bytes more have passed."""
        self._bytes += count
        if self._bytes >= STEP:
            self._bytes = 0
            signal.alarm(STEP_S)


def _end_with_input() -> None:
    """End this program when its standard input does: with who started it, or the way to it."""

    def watch() -> None:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _as_server(identity: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    descriptor = os.memfd_create("identity")  # the key is in no file
    os.write(descriptor, identity.encode())
    context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    os.close(descriptor)
    return context


def _listen(
    listener: socket.socket, context: ssl.SSLContext, token: bytes, peers: queue.Queue[ssl.SSLSocket]
) -> None:
    """Let in who knows the token; strangers are many at most, hold up nobody else and have STRANGER_S."""
    places = threading.BoundedSemaphore(MOST_STRANGERS)

    def admit(connection: socket.socket) -> None:
        same = connection.dup()
        watch = threading.Timer(STRANGER_S, _cut, [same])
        watch.start()
        try:
            with suppress(OSError, queue.Full):
                peer = context.wrap_socket(connection, server_side=True)
                if hmac.compare_digest(_received(peer, len(token)), token):
                    peers.put_nowait(peer)
        finally:
            watch.cancel()
            same.close()
            places.release()

    while places.acquire():
        try:
            connection = listener.accept()[0]
        except OSError:
            if listener.fileno() < 0:
                return
            places.release()
            continue
        threading.Thread(target=admit, args=(connection,), daemon=True).start()


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _received(peer: ssl.SSLSocket, count: int) -> bytes:
    content = b""
    while len(content) < count and (piece := peer.recv(count - len(content))):
        content += piece
    return content
