"""The trivial task of soak.py: two ranks that say a word to each other ten times a second. It runs on the hosts."""

import os
import signal
import socket
import time
from typing import TextIO

from utils.events import Event, EventName, format_line

STEPS = 30
PAUSE_S = 0.1
# A rank that ends by itself, as if it had finished, cannot be made from outside: it does so when it gets this signal.
LEAVE_EARLY = signal.SIGUSR2


def main() -> None:
    """Train as the rank that the environment names."""
    signal.signal(LEAVE_EARLY, lambda *_: os._exit(0))
    rank = int(os.environ["RANK"])

    def log(name: str, **value: object) -> None:
        if rank == 0:
            print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)

    peer = _connection(rank)
    words = peer.makefile()
    log(EventName.INIT_START)
    begin = time.monotonic()
    log(EventName.TRAIN_START, max_steps=STEPS)
    for step in range(1, STEPS + 1):
        _exchange(peer, words, step, rank)
        print(f"step {step} of rank {1 - rank}", flush=True)
        log(EventName.STEP_END, global_steps=step, loss=1.0, **{"seq/s": 80.0})
        time.sleep(PAUSE_S)
    log(EventName.TRAIN_END)
    took = time.monotonic() - begin
    times = dict.fromkeys(("raw_train_time", "no_eval_time", "pure_compute_time", "e2e_time"), took)
    log(EventName.FINISHED, converged=True, num_trained_samples=8 * STEPS, **times)


def _connection(rank: int) -> socket.socket:
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        return socket.create_server(("", address[1])).accept()[0]
    for _ in range(600):
        try:
            return socket.create_connection(address)
        except OSError:
            time.sleep(0.1)
    raise SystemExit("rank 0 cannot be reached")


def _exchange(peer: socket.socket, words: TextIO, step: int, rank: int) -> None:
    """Say the step and hear it from the peer; who has lost that says so in a framework's own words."""
    try:
        peer.sendall(f"step {step} of rank {rank}\n".encode())
        heard = words.readline()
    except OSError:
        heard = ""
    if heard != f"step {step} of rank {1 - rank}\n":
        raise SystemExit(f"Connection closed by remote peer: {heard!r}")


if __name__ == "__main__":
    main()
