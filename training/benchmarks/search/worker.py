"""A worker of a search, as its first rank sees it: trials come, what comes of them is told, a heartbeat goes on.

    with SearchWorker(
        read_place(), ranks=8, precision="bf16", data=facts, configuration=digest, space=space
    ) as worker:
        for trial in worker.trials():
            ...
            goes_on = worker.epoch_done(trial, 1, accuracy=0.1, loss=2.3, training_samples=..., validation_samples=...)
            ...
            worker.trial_done(trial)

While its chips train, a process beside it makes proposals (`benchmarks.search.proposer`), so that the next trial is
there when they are free; for how long they were not is measured here. When the search ends in the middle of a trial,
the process is ended with 0 by the heartbeat: the launcher ends the other ranks with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Thread
from types import TracebackType
from typing import Any

from benchmarks.search.client import GIVE_UP_S, Client, Place, RequestRefusedError
from benchmarks.search.proposer_process import PROPOSER, Proposer
from benchmarks.search.protocol import (
    NOT_YOURS,
    UNREGISTERED,
    Beat,
    DataFacts,
    EpochDone,
    Evaluations,
    Heartbeat,
    History,
    NextTrial,
    Over,
    Precision,
    Propose,
    ProtocolError,
    Register,
    Reply,
    Request,
    Settled,
    Trial,
    TrialDone,
    TrialFailed,
    Wait,
)
from utils.errors import raised
from utils.search.events import LARGEST
from utils.text_files import one_line, shortened

JOIN_AGAIN_S = 2.0  # while the number is taken by a session that may be lost
MOST_PROPOSERS = 3  # that fail one after the other
LONGEST_REASON = 500


def end_process(code: int, reason: str) -> None:
    """End this process at once, whatever its other threads do."""
    print(f"worker: {reason}", flush=True)
    sys.stderr.flush()
    os._exit(code)


class SearchWorker:
    """The worker's side of a session; its methods are for one thread.

    Args:
        place: where the controller is, and who this is.
        ranks: of this worker, a chip each. precision, data, configuration: as in the protocol's Register.
        on_end: called by another thread with an exit code and the reason, where the process must not go on.
        space: what is searched; the proposer is told. proposer: the command of the process that makes proposals.
        give_up_s: the controller is lost when it has not answered for so long.

    Raises:
        FlagPerfError: the controller is lost, or does not take this worker.
    """

    def __init__(
        self,
        place: Place,
        *,
        ranks: int,
        precision: Precision,
        data: DataFacts,
        configuration: str,
        on_end: Callable[[int, str], None] = end_process,
        space: object,
        proposer: Sequence[str] = PROPOSER,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        self._who: dict[str, Any] = {"worker": place.worker, "session": place.session, "start": place.start}
        self._register = Register(
            **self._who,
            node_rank=place.node_rank,
            ranks=ranks,
            precision=precision,
            data=data,
            configuration=configuration,
        )
        self._on_end, self._proposer, self._space = on_end, proposer, space
        self._clients = [Client(place, give_up_s) for _ in range(3)]
        self._trials, self._beats, self._proposals = self._clients
        self._closing = Event()
        reply = self._join(time.monotonic() + give_up_s)
        self._waited_s, self._waits_since = 0.0, time.monotonic()
        self._answered = time.monotonic()
        self.settled = reply if isinstance(reply, Settled) else None
        self.over = reply.reason if isinstance(reply, Over) else ""

    def __enter__(self) -> SearchWorker:
        if self.settled:
            for task in (self._keep_beating, self._keep_proposing):
                Thread(target=self._guarded, args=(task,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        for client in self._clients:
            client.close()

    def waited_s(self) -> float:
        """For how long the chips have waited for a trial, in all, the wait that goes on included."""
        since = self._waits_since
        return self._waited_s + (time.monotonic() - since if since else 0.0)

    def trials(self) -> Iterator[Trial]:
        """The trials of this worker, one after the other, until the search is over for it."""
        while not self.over:
            self._waits_since = self._waits_since or time.monotonic()
            reply = self._ask(self._trials, NextTrial(**self._who, waited_s=self.waited_s()))
            if isinstance(reply, Wait):
                self._closing.wait(reply.again_s)
            elif isinstance(reply, Trial):
                self._waited_s, self._waits_since = self.waited_s(), 0.0
                yield reply

    def epoch_done(
        self,
        trial: Trial,
        epoch: int,
        *,
        accuracy: float,
        loss: float | None,
        training_samples: int,
        validation_samples: int,
    ) -> bool:
        """Tell of an epoch that has ended; False where the trial is not to go on: ask for the next one.

        Raises:
            RequestRefusedError: the controller does not believe it.
        """
        done = EpochDone(
            **self._who,
            trial=trial.trial,
            attempt=trial.attempt,
            epoch=epoch,
            accuracy=accuracy,
            loss=loss if loss is not None and 0 <= loss <= LARGEST else None,
            seconds=time.monotonic() - self._answered,
            delayed_s=0.0,
            training_samples=training_samples,
            validation_samples=validation_samples,
        )
        return self._still_ours(done)

    def trial_done(self, trial: Trial, *, stopped: bool = False) -> None:
        """All its epochs are done, or (`stopped`) it has gained nothing for so long that it was ended."""
        self._still_ours(TrialDone(**self._who, trial=trial.trial, attempt=trial.attempt, stopped=stopped))

    def trial_failed(self, trial: Trial, reason: str) -> None:
        """It cannot be trained; the search goes on with another."""
        text = shortened(one_line(reason), LONGEST_REASON)
        self._still_ours(TrialFailed(**self._who, trial=trial.trial, attempt=trial.attempt, reason=text))

    def _still_ours(self, request: Request) -> bool:
        try:
            return not isinstance(self._ask(self._trials, request), Over)
        except RequestRefusedError as error:
            if error.status != NOT_YOURS:
                raise
            return False  # it was handed to another worker while this one was not heard of

    def _join(self, until: float) -> Reply:
        while True:
            try:
                return self._trials.send(self._register)
            except RequestRefusedError as error:
                if error.status != NOT_YOURS or time.monotonic() > until:
                    raise
                self._closing.wait(JOIN_AGAIN_S)

    def _ask(self, client: Client, request: Request) -> Reply:
        """The answer; a session that was taken for lost is registered again before."""
        try:
            reply = client.send(request)
        except RequestRefusedError as error:
            if error.status != UNREGISTERED:
                raise
            reply = client.send(self._register)
            reply = reply if isinstance(reply, Over) else client.send(request)
        if client is self._trials:
            self._answered = time.monotonic()
        if isinstance(reply, Over):
            self.over = reply.reason or "over"
        return reply

    def _guarded(self, task: Callable[[], None]) -> None:
        """A thread that fails ends the process: it would not be missed else."""
        try:
            task()
        except Exception as error:
            if not self._closing.is_set():
                self._on_end(1, raised(error))

    def _keep_beating(self) -> None:
        next_s = self.settled.heartbeat_s if self.settled else 0.0
        while not self._closing.wait(next_s):
            reply = self._ask(self._beats, Heartbeat(**self._who, waited_s=self.waited_s()))
            if isinstance(reply, Over):
                self._on_end(0, f"the search is over: {reply.reason}")
                return
            next_s = reply.next_s if isinstance(reply, Beat) else 0.0

    def _keep_proposing(self) -> None:
        for left in reversed(range(MOST_PROPOSERS)):
            with Proposer(self._proposer, self._space) as proposer:
                try:
                    self._propose_by(proposer)
                    return
                except (OSError, ProtocolError):
                    if not left:
                        raise

    def _propose_by(self, proposer: Proposer) -> None:
        """Pass on what came of trials, and back what is proposed, until the search is over."""
        latest = 0
        while not self._closing.is_set():
            reply = self._ask(self._proposals, History(**self._who, after=latest))
            if not isinstance(reply, Evaluations):
                return
            latest = reply.latest
            proposed = proposer.answer(reply)
            if proposed:
                self._ask(self._proposals, Propose(**self._who, proposed=proposed))
            else:
                self._closing.wait(reply.again_s)
