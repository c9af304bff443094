"""What kubectl is given: what an older one, and one in a pod, can do with too."""

from __future__ import annotations

import asyncio
import json

from run_benchmarks.transports.base import ByteSink, ByteSource
from run_benchmarks.transports.kubectl.client import Kubectl
from run_benchmarks.transports.local import LocalTransport


class Recording(LocalTransport):
    """FAKE: takes what it is given for a command that prints this."""

    def __init__(self, printed: bytes = b"") -> None:
        super().__init__("here")
        self.printed = printed
        self.given: list[tuple[tuple[str, ...], ByteSource | None]] = []

    async def _run(
        self,
        argv: tuple[str, ...],
        stdin: ByteSource | None,
        stdout: ByteSink,
        stderr: ByteSink | None = None,
    ) -> tuple[int, str]:
        self.given.append((argv, stdin))
        await stdout(self.printed)
        return 0, ""


def test_objects_follow_each_other_without_anything_between_them() -> None:
    """kubectl before 1.33 reads JSON behind JSON, and no `---`."""
    here, objects = Recording(), [{"kind": "Service"}, {"kind": "Job"}]
    asyncio.run(Kubectl("bench", here=here).apply(objects))
    ((_, given),) = here.given
    assert isinstance(given, bytes) and [json.loads(line) for line in given.splitlines()] == objects


def test_no_option_hides_the_service_account_of_the_pod() -> None:
    """With --request-timeout kubectl asks localhost:8080, as if its configuration were of somebody's making."""
    here = Recording()
    asyncio.run(Kubectl(here=here).ask("get", "pods"))
    assert [argv for argv, _ in here.given] == [("kubectl", "get", "pods")]


def test_events_that_cannot_be_read_are_none() -> None:
    """A node writes of its own pod as many as it likes: they are words to what is known without them."""
    many = json.dumps({"items": [{"message": "x"}] * 200_000}).encode()
    for printed in (many, b"{", b'{"items": 5}'):
        assert asyncio.run(Kubectl("bench", here=Recording(printed)).events_of("pod")) == ()
