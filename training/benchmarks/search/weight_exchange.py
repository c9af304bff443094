"""The weights of trained networks, from the worker that trained them by way of the controller to their children's.

    PUT /weights/<trial>    bytes of the trial that the worker trains, no more than `most_bytes`: 204
    GET /weights/<trial>    the bytes: 200; 404 where there are none (any more), or the first children failed by them

They are bytes to the controller; who takes them checks them (`pytorch/stored_weights.py`). A search goes on without: a
child whose parent's weights are not to be had begins with fresh ones.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException

from benchmarks.search.architecture import MOST_PARAMETERS
from benchmarks.search.client import Place, whole_answer
from benchmarks.search.protocol import THERE_ARE_NONE, ProtocolError
from utils.errors import raised

PATH = "/weights/"
LARGEST_HEADER = 2**22  # bytes: the architecture, and the tensors' names, shapes and types
ANSWER_S = 60.0  # for a part of them
TRIES = 3


def most_bytes(parameters: int) -> int:
    """Of the weights of a network: fp32, as much again for statistics of normalisations, and the header."""
    return 2 * 4 * parameters + LARGEST_HEADER


LARGEST_WEIGHTS = most_bytes(MOST_PARAMETERS)


class WeightExchange:
    """A worker's way to them, for one thread. What fails is printed, and tried again some times."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def put(self, trial: int, data: bytes) -> None:
        """Store them for the trial's children."""
        self._tried("PUT", trial, data)

    def get(self, trial: int) -> bytes | None:
        """Of an earlier trial; None where they are not to be had."""
        return self._tried("GET", trial, None)

    def _tried(self, method: str, trial: int, data: bytes | None) -> bytes | None:
        for _ in range(TRIES):
            try:
                status, answer = self._answer(method, f"{PATH}{trial}", data)
            except (OSError, HTTPException, ProtocolError) as error:
                status, answer = 0, raised(error).encode()
            if status in (200, 204):
                return answer
            if status == THERE_ARE_NONE:
                return None
            print(f"weights of trial {trial}: {method}: {status or answer.decode()}", flush=True)
        return None

    def _answer(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        connection = HTTPConnection(self._place.host, self._place.port, timeout=ANSWER_S)
        try:
            connection.request(method, path, data, {"Authorization": f"Bearer {self._place.token}"})
            response = connection.getresponse()
            return response.status, whole_answer(response, LARGEST_WEIGHTS)
        finally:
            connection.close()
