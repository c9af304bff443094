"""What one controller of a search bears: simulated workers that train in no time, all asking at once.

    .venv/bin/python benches/search.py [--workers 512] [--seconds 30]

The controller is the real one, on this machine, with its state on disk; each proposal is a ResNet-50 that it parses and
counts. The workers are coroutines of one process beside it, each with three connections as a real one has: trials,
proposals, heartbeats. First they train in no time: so many proposals, and answers, come of it. Then for 15 s a
trial, four times as fast as one of 60 s: what the worst worker's chips wait for a trial, on average, is compared with
1 % of 60 s. Last line: JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from msgspec import Raw  # noqa: E402

from benchmarks.search.architecture import Images, as_json, parse  # noqa: E402
from benchmarks.search.client import FIRST_PAUSE_S  # noqa: E402
from benchmarks.search.controller.architectures import identity_of  # noqa: E402
from benchmarks.search.controller.conduct import conduct  # noqa: E402
from benchmarks.search.controller.connections import allow_open_files  # noqa: E402
from benchmarks.search.controller.proposals import Facts  # noqa: E402
from benchmarks.search.controller.server import listen  # noqa: E402
from benchmarks.search.controller.settings import SearchSettings  # noqa: E402
from benchmarks.search.operations import operations_of  # noqa: E402
from benchmarks.search.protocol import (  # noqa: E402
    Beat,
    DataFacts,
    EpochDone,
    Evaluations,
    Heartbeat,
    History,
    Hyperparameters,
    NextTrial,
    Over,
    Propose,
    Proposed,
    Register,
    Reply,
    Request,
    Trial,
    TrialDone,
    Wait,
    encode,
    reply_of,
)
from benchmarks.search.resnet import resnet50  # noqa: E402
from tests.ports import free_port  # noqa: E402
from utils.roles import worker_token  # noqa: E402

TOKEN = "a-token-of-this-bench"
DATA = DataFacts(1_281_167, 50_000, "ab" * 32)
TRIAL_S, FASTER = 60.0, 4
JSON = as_json(resnet50(Images(224, 224, 3), 1000))


def counted(proposed: Proposed, parent: Proposed | None) -> tuple[Proposed, Facts]:
    """As the controller checks it; no architecture is taken twice, and so this one is another each time."""
    architecture = parse(bytes(proposed.architecture))
    operations = operations_of(architecture)
    size = (len(architecture.layers), architecture.parameters)
    identity = f"{identity_of(architecture)} {proposed.hyperparameters.dropout}"
    return proposed, Facts(identity, *size, operations.forward, operations.training, ())


@dataclass
class Measured:
    """Seconds of each request's answer, and of each worker's waits for a trial; until `ends` all is to be answered."""

    ends: float
    answers: list[float] = field(default_factory=list)
    waits: dict[int, list[float]] = field(default_factory=dict)
    proposals: int = 0
    broken_off: int = 0  # connections


class Line:
    """A connection to the controller."""

    def __init__(self, port: int, measured: Measured) -> None:
        self._port, self._measured = port, measured
        self._reader: asyncio.StreamReader | None = None

    async def send(self, request: Request) -> Reply:
        """The answer; asked for again, as by a real worker, where the connection is broken off.

        Raises:
            RuntimeError: the controller does not take the request.
        """
        begin = time.monotonic()
        while True:
            try:
                return await self._answer(request, begin)
            except (OSError, EOFError):
                if time.monotonic() > self._measured.ends:
                    return Over("the controller has ended")
            self._reader = None
            self._measured.broken_off += 1
            await asyncio.sleep(random.uniform(0.5, 1.0) * FIRST_PAUSE_S)

    async def _answer(self, request: Request, begin: float) -> Reply:
        if self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**25)
        body = encode(request)
        token = worker_token(TOKEN, request.worker)
        head = f"POST / HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        head_back = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line[15:]) for line in head_back.split("\r\n") if line.startswith("content-length:")
        )
        answer = await self._reader.readexactly(length)
        self._measured.answers.append(time.monotonic() - begin)
        if " 200 " not in head_back.partition("\r\n")[0]:
            raise RuntimeError(
                f"{type(request).__name__}: {head_back.partition(chr(13))[0]}: {answer.decode()}"
            )
        return reply_of(answer)


class Worker:
    """A simulated worker: its trials, its proposals and its heartbeats go on side by side until the search is over."""

    def __init__(self, number: int, port: int, measured: Measured, epoch_s: float) -> None:
        self._who = {"worker": number, "session": f"{number:032x}", "start": 1}
        self._lines = [Line(port, measured) for _ in range(3)]
        self._measured, self._epoch_s = measured, epoch_s
        self._waits = measured.waits.setdefault(number, [])

    async def work(self) -> None:
        """Until the search is over; not all begin at once."""
        await asyncio.sleep(random.uniform(0, self._epoch_s / 2))
        message = Register(**self._who, node_rank=self._who["worker"], ranks=8, precision="bf16", data=DATA)  # type: ignore[arg-type]
        await self._lines[0].send(message)
        await asyncio.gather(self._train(), self._propose(), self._beat())

    async def _train(self) -> None:
        while trial := await self._next_trial():
            place = {"trial": trial.trial, "attempt": trial.attempt}
            for epoch in range(1, trial.epochs + 1):
                begin = time.monotonic()
                await asyncio.sleep(self._epoch_s)
                done = EpochDone(
                    **self._who,  # type: ignore[arg-type]
                    **place,
                    epoch=epoch,
                    accuracy=random.random(),
                    loss=1.0,
                    seconds=time.monotonic() - begin,
                    delayed_s=0.0,
                    training_samples=DATA.training_samples,
                    validation_samples=DATA.validation_samples,
                )
                if isinstance(await self._lines[0].send(done), Over):
                    return
            await self._lines[0].send(TrialDone(**self._who, **place, stopped=False))  # type: ignore[arg-type]

    async def _next_trial(self) -> Trial | None:
        begin = time.monotonic()
        while True:
            reply = await self._lines[0].send(NextTrial(**self._who, waited_s=0.0))  # type: ignore[arg-type]
            if not isinstance(reply, Wait):
                break
            await asyncio.sleep(reply.again_s)
        if isinstance(reply, Trial):
            self._waits.append(time.monotonic() - begin)
            return reply
        return None

    async def _propose(self) -> None:
        latest = 0
        while True:
            reply = await self._lines[1].send(History(**self._who, after=latest))  # type: ignore[arg-type]
            if not isinstance(reply, Evaluations):
                return
            latest = reply.latest
            if not reply.wanted:
                await asyncio.sleep(reply.again_s)
                continue
            unique = Hyperparameters(random.random() / 5, 3, 448)
            proposed = Proposed(None, (), Raw(JSON), unique)
            await self._lines[1].send(Propose(**self._who, proposed=proposed))  # type: ignore[arg-type]
            self._measured.proposals += 1

    async def _beat(self) -> None:
        while isinstance(reply := await self._lines[2].send(Heartbeat(**self._who, waited_s=0.0)), Beat):  # type: ignore[arg-type]
            await asyncio.sleep(reply.next_s)


async def measure(port: int, workers: int, epoch_s: float, seconds: float) -> Measured:
    """Let all work until the search is over."""
    measured = Measured(time.monotonic() + seconds - 1)
    await asyncio.gather(*(Worker(number, port, measured, epoch_s).work() for number in range(workers)))
    return measured


def shown(name: str, measured: Measured, seconds: float) -> tuple[float, float, float]:
    """Proposals a second, the 99th percentile of answers and the worst worker's mean wait in s; all as a table."""
    answers = sorted(measured.answers)
    p99_s, rate = answers[int(0.99 * (len(answers) - 1))], measured.proposals / seconds
    waits = [
        statistics.mean(each[1:]) for each in measured.waits.values() if len(each) > 1
    ]  # behind the start
    trials = sum(map(len, measured.waits.values()))
    print(name)
    print(
        f"  requests, proposals and trials a second  {len(answers) / seconds:.0f} {rate:.1f} {trials / seconds:.1f}"
    )
    print(f"  answer: median, 99th percentile          {statistics.median(answers):.3f} s, {p99_s:.3f} s")
    print(f"  connections that were broken off         {measured.broken_off}")
    print(f"  wait for a trial: mean, worst worker     {statistics.mean(waits):.3f} s, {max(waits):.3f} s")
    return rate, p99_s, max(waits)


def control(folder: str, port: int, options: argparse.Namespace) -> int:
    """The controller's process."""
    settings = SearchSettings(options.workers, options.seconds, None, (1,), 1)
    with (Path(folder) / "controller.out.log").open("w") as out:
        return conduct(
            settings,
            folder=Path(folder),
            earlier=None,
            listener=listen("127.0.0.1", port),
            token=TOKEN,
            check=counted,
            out=out,
        )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--controller", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.controller:
        return control(options.controller[0], int(options.controller[1]), options)
    trial_s = TRIAL_S / FASTER
    if options.seconds < 2 * trial_s:
        parser.error(f"--seconds: {2 * trial_s:g} at least, for every worker to have a second trial")
    allow_open_files(options.workers)
    rate, p99_s, _ = shown("trained in no time", conducted(options, 0.0), options.seconds)
    _, _, wait_s = shown(f"trained for {trial_s:g} s", conducted(options, trial_s), options.seconds)
    figures = {
        "proposals_per_s": round(rate, 1),
        "p99_s": round(p99_s, 3),
        "waiting": round(wait_s / TRIAL_S, 4),
    }
    print(json.dumps(figures))
    return 0


def conducted(options: argparse.Namespace, epoch_s: float) -> Measured:
    """A search with its controller in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        words = ["--workers", str(options.workers), "--seconds", str(options.seconds)]
        process = subprocess.Popen([sys.executable, __file__, *words, "--controller", folder, str(port)])
        try:
            while "SEARCH_START" not in read(Path(folder) / "controller.out.log"):
                time.sleep(0.1)
            measured = asyncio.run(measure(port, options.workers, epoch_s, options.seconds))
            process.wait()
        finally:
            process.kill()
    return measured


def read(log: Path) -> str:
    """What it holds, if it is there."""
    return log.read_text() if log.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
