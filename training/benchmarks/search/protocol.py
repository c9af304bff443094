"""What workers and the controller of a search say to each other: JSON over HTTP, one message a request.

A request is `POST /` with the worker's token (`Authorization: Bearer ...`) and one of `Request` as its body; the
answer is 200 with one of `Reply`, or one of the statuses below with a `Refusal`.

A request may be sent again where its answer was lost: what was taken stays taken, once. Every text, number and list is
bounded, fields that are not named here are refused. Architectures and edits are passed on as the JSON that they are;
`benchmarks.search.architecture` checks them.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from utils.errors import FlagPerfError
from utils.roles import MOST_RESTARTS
from utils.search.events import LARGEST, MOST_EDITS

TOKEN_FORM = re.compile(r"[A-Za-z0-9._~-]{16,256}")

# Statuses of what is refused.
WITHOUT_TOKEN = 401  # the token is missing, or not that of this worker in this run
THERE_ARE_NONE = 404  # weights: not any more, or children fail by them
NOT_YOURS = 409  # the worker's number has a live session, or the trial was handed to somebody else
UNREGISTERED = 410  # the session was taken for lost, or is not registered: register (again)
TOO_LARGE = 413  # the body is longer than LARGEST_BODY
WRONG = 422  # no message of this form, or one that contradicts what is known: the same again will not help
TOO_OFTEN = 429  # too many requests of one worker: try again later

LARGEST_BODY = 2**19  # bytes: an architecture of 2,000 layers has less than half of it
LARGEST_REPLY = 2**25  # bytes
HISTORY = 512  # trials that have ended, of which a proposal is made

T = TypeVar("T")
Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Ordinal = Annotated[int, Meta(ge=1, le=2**31 - 1)]  # trials, attempts, epochs and rounds count from 1
Count = Annotated[int, Meta(ge=0, le=2**53)]
Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Text = Annotated[str, Meta(max_length=500)]
Precision = Literal["fp32", "tf32", "bf16", "fp16"]
Hexadecimal = Annotated[str, Meta(pattern="^[0-9a-f]{32,64}\\Z")]


class ProtocolError(FlagPerfError):
    """What was sent is no message."""


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message."""


class DataFacts(Record, frozen=True):
    """What a worker trains and validates on: samples of an epoch, and what names the data (the same on all workers)."""

    training_samples: Annotated[int, Meta(ge=1, le=2**53)]
    validation_samples: Annotated[int, Meta(ge=1, le=2**53)]
    digest: Hexadecimal


class Hyperparameters(Record, frozen=True):
    """How a trial is trained. batch_size: samples a step over all ranks of the worker; kernel: of new convolutions."""

    dropout: Annotated[float, Meta(ge=0, lt=1)]
    kernel: Literal[3, 5, 7]
    batch_size: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class Proposed(Record, frozen=True):
    """An architecture that is to be tried.

    parent: the trial of which it was made by `edits`; None for edits of the network that the search starts from. tuned:
    whether its hyper-parameters were searched for.
    """

    parent: Ordinal | None
    edits: Annotated[tuple[Raw, ...], Meta(max_length=MOST_EDITS)]
    architecture: Raw
    hyperparameters: Hyperparameters
    tuned: bool = False


class Evaluation(Record, frozen=True):
    """What came of a proposal; its architecture follows from `parent` and `edits`, as of Proposed.

    trial: None before it was handed out first. accuracy: 0 to 1; None before it has ended, and of one that failed.
    """

    proposal: Ordinal
    trial: Ordinal | None
    accuracy: Share | None
    has_ended: bool
    parent: Ordinal | None
    edits: Annotated[tuple[Raw, ...], Meta(max_length=MOST_EDITS)]
    hyperparameters: Hyperparameters
    tuned: bool


class Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A request. `session` is the launcher's, `start` counts how often it has started this worker, from 1.

    A later start of the same session takes the worker over at once; another session only when the one before is lost.
    """

    worker: Number
    session: Hexadecimal
    start: Annotated[int, Meta(ge=1, le=1 + MOST_RESTARTS)]


class Register(Message, frozen=True, tag="register"):
    """The first message of a session; answered with Settled.

    ranks: the worker's own, a chip each. configuration: names its parameters.
    """

    node_rank: Number
    ranks: Ordinal
    precision: Precision
    data: DataFacts
    configuration: Hexadecimal


class NextTrial(Message, frozen=True, tag="next_trial"):
    """The worker is free. Answered with Trial, Wait or Over.

    waited_s: for how long this start's chips have waited for trials so far, in all.
    """

    waited_s: Seconds


class EpochDone(Message, frozen=True, tag="epoch_done"):
    """An epoch ended, its validation included; answered with Taken or Over.

    accuracy: of the validation; loss: mean of the training, None where it is above LARGEST or no number. seconds:
    since the answer that the worker had before this epoch (the trial, or to its last epoch) by its clock; delayed_s:
    since then spent in trying to send this message. samples: really computed, over all ranks.
    """

    trial: Ordinal
    attempt: Ordinal
    epoch: Ordinal
    accuracy: Share
    loss: Annotated[float, Meta(ge=0, le=float(LARGEST))] | None
    seconds: Annotated[float, Meta(gt=0, le=1e9)]
    delayed_s: Seconds
    training_samples: Count
    validation_samples: Count


class TrialDone(Message, frozen=True, tag="trial_done"):
    """All epochs of a trial are done, or (`stopped`) it gained nothing any more; answered with Taken or Over."""

    trial: Ordinal
    attempt: Ordinal
    stopped: bool


class TrialFailed(Message, frozen=True, tag="trial_failed"):
    """A trial cannot be trained; answered with Taken or Over."""

    trial: Ordinal
    attempt: Ordinal
    reason: Text


class Heartbeat(Message, frozen=True, tag="heartbeat"):
    """The worker lives; answered with Beat or Over. waited_s: as of NextTrial, the wait that goes on included."""

    waited_s: Seconds


class History(Message, frozen=True, tag="history"):
    """What came of proposals since change number `after`, 0 for all; answered with Evaluations or Over."""

    after: Count


class Propose(Message, frozen=True, tag="propose"):
    """An architecture for the queue; answered with Taken or Over."""

    proposed: Proposed


class Answer(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A reply."""


class Settled(Answer, frozen=True, tag="settled"):
    """The session is registered; heartbeat_s: the first is due within it."""

    heartbeat_s: Seconds


class Trial(Answer, frozen=True, tag="trial"):
    """What to train. round: of this worker; epochs: at most; attempt: more than 1 where it was lost with others."""

    trial: Ordinal
    attempt: Ordinal
    round: Ordinal
    epochs: Ordinal
    proposed: Proposed


class Wait(Answer, frozen=True, tag="wait"):
    """There is no proposal yet: ask again after so many seconds."""

    again_s: Seconds


class Taken(Answer, frozen=True, tag="taken"):
    """It stands in the state now; of a proposal: where it was asked for, and was not there before."""


class Beat(Answer, frozen=True, tag="beat"):
    """The next heartbeat is due within so many seconds."""

    next_s: Seconds


class Evaluations(Answer, frozen=True, tag="evaluations"):
    """What changed behind `after`, oldest change first, a part at a time: an array of Evaluation.

    latest: the change number to ask with next. wanted: a proposal is expected of the one who asked, for a trial of
    `round`, made with `seed`; else ask again after `again_s`.
    """

    evaluations: Raw
    latest: Count
    wanted: bool
    round: Ordinal
    seed: Count
    again_s: Seconds


class Over(Answer, frozen=True, tag="over"):
    """The search has ended, or is for this worker: train no more. reason: why."""

    reason: Text


class Refusal(Record, frozen=True):
    """Why a request was refused."""

    error: str


Request: TypeAlias = (
    Register | NextTrial | EpochDone | TrialDone | TrialFailed | Heartbeat | History | Propose
)
Reply: TypeAlias = Settled | Trial | Wait | Taken | Beat | Evaluations | Over

encode = msgspec.json.Encoder().encode
_REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_EVALUATIONS: msgspec.json.Decoder[tuple[Evaluation, ...]] = msgspec.json.Decoder(tuple[Evaluation, ...])
_PROPOSED: msgspec.json.Decoder[Proposed | None] = msgspec.json.Decoder(Proposed | None)
_REFUSALS: msgspec.json.Decoder[Refusal] = msgspec.json.Decoder(Refusal)


def request_of(body: bytes) -> Request:
    """The request in a body.

    Raises:
        ProtocolError: it is none, says more than a request may, or is nested too deep.
    """
    return _decoded(_REQUESTS, body)


def reply_of(body: bytes) -> Reply:
    """The reply in a body; ProtocolError as of `request_of`."""
    return _decoded(_REPLIES, body)


def refusal_of(body: bytes) -> Refusal:
    """The refusal in a body; ProtocolError as of `request_of`."""
    return _decoded(_REFUSALS, body)


def evaluations_of(reply: Evaluations) -> tuple[Evaluation, ...]:
    """What it tells; ProtocolError as of `request_of`."""
    return _decoded(_EVALUATIONS, bytes(reply.evaluations))


def proposed_of(line: bytes) -> Proposed | None:
    """What a proposer printed; None where it has none; ProtocolError as of `request_of`."""
    return _decoded(_PROPOSED, line)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ProtocolError(str(error)) from error
    except RecursionError as error:
        raise ProtocolError("lists and objects stand in each other too deep") from error
