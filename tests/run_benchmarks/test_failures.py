"""What an error on a host means for the round."""

from __future__ import annotations

import pytest

from run_benchmarks.failures import failure_on, interrupted
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.remedies import remedy_of
from run_benchmarks.stages.image import DistributionError, ImagesDifferError
from run_benchmarks.transports.base import (
    HELD_BYTES,
    LONGEST_LINE,
    CommandError,
    Completed,
    TransportError,
)
from utils.errors import FlagPerfError
from utils.records import FailureClass, Stage, Verdict


def refused(*argv: str, output: str = "", code: int = 125) -> CommandError:
    return CommandError(Completed("h1", argv, code, "", output), "look there")


@pytest.mark.parametrize(
    ("stage", "error", "kind"),
    [
        (Stage.DEPLOY, refused("sh"), FailureClass.COMMAND_FAILED),
        (Stage.IMAGE, refused("docker", "build"), FailureClass.IMAGE_NOT_BUILT),
        (Stage.IMAGE, DistributionError("x"), FailureClass.IMAGE_NOT_DISTRIBUTED),
        (Stage.IMAGE, ImagesDifferError("x"), FailureClass.IMAGES_DIFFER),
        (Stage.LAUNCH, refused("docker", "run"), FailureClass.CONTAINER_NOT_STARTED),
    ],
)
def test_classes(stage: Stage, error: FlagPerfError, kind: FailureClass) -> None:
    failure = failure_on("h1", stage, error)
    assert (failure.verdict, failure.stage, failure.failure_class) == (Verdict.FAILED, stage, kind)
    assert failure.host == "h1"


@pytest.mark.parametrize("stage", [Stage.DEPLOY, Stage.IMAGE, Stage.LAUNCH])
def test_a_host_out_of_reach_is_unreachable_at_any_stage(stage: Stage) -> None:
    failure = failure_on("h1", stage, TransportError("Connection refused", where="h1"))
    assert (failure.verdict, failure.failure_class) == (Verdict.UNREACHABLE, FailureClass.HOST_UNREACHABLE)
    assert failure.stage is stage
    assert "Connection refused" in failure.evidence


def test_a_command_is_named_shortly_and_quoted_in_full() -> None:
    error = refused("docker", "run", "--detach", "image", output="no such device\nmore of it")
    failure = failure_on("h1", Stage.LAUNCH, error)
    assert failure.message == "`docker run ...` ended with exit code 125"
    assert failure.evidence.splitlines()[0] == "exit code 125: docker run --detach image"
    assert failure.evidence.endswith("no such device\nmore of it")
    assert failure.remedy == "look there"


def test_lines_of_a_host_are_cut_before_they_are_searched_for_secrets() -> None:
    """They may have any length, and the evidence quotes twenty."""
    lines = ["-token" * 1_000_000, "a token=abc", "HF_TOKEN=" + "x" * 1_000_000]
    error = refused("docker", "run", output="\n".join(lines))
    assert len(error.message) < 3 * LONGEST_LINE
    evidence = failure_on("h1", Stage.LAUNCH, error).evidence
    assert "a token=***" in evidence and "xxx" not in evidence


SECRET = "s3cr3t-index-password-0123456789"


@pytest.mark.parametrize(
    "completed",
    [
        Completed("h1", ("pip",), 1, "", f"pip: {'x ' * (LONGEST_LINE // 2 - 10)}{SECRET} and more"),
        Completed("h1", ("pip",), 1, f"{SECRET[7:]} is refused by pip:", "", is_cut=True),
        Completed("h1", ("pip",), 1, "pip:", f"{SECRET[7:]} {'x' * HELD_BYTES}\n is refused by pip:"),
    ],
    ids=["line", "output", "errors"],
)
def test_of_a_secret_where_a_hosts_words_are_cut_nothing_is_shown(completed: Completed) -> None:
    failure = failure_on("h1", Stage.IMAGE, CommandError(completed))
    shown = Secrets(held=frozenset({SECRET})).hide_in(failure).evidence
    assert "pip:" in shown
    assert not any(SECRET[at : at + 5] in shown for at in range(len(SECRET) - 5))


@pytest.mark.parametrize(
    ("stage", "words", "kind"),
    [
        (Stage.DEPLOY, "tar: ./x: Cannot write: No space left on device", FailureClass.DISK_FULL),
        (Stage.IMAGE, "write /x: no space left on device", FailureClass.DISK_FULL),
        (Stage.LAUNCH, "mkdir /x: disk quota exceeded", FailureClass.DISK_FULL),
        # logs are written on the controller
        (Stage.COLLECT, "[Errno 28] No space left on device", FailureClass.LOGS_NOT_COLLECTED),
    ],
)
def test_a_full_disk_of_a_host_is_named(stage: Stage, words: str, kind: FailureClass) -> None:
    failure = failure_on("h1", stage, refused("sh", output=words))
    assert failure.failure_class is kind
    assert ("free space on h1" in failure.remedy) is (kind is FailureClass.DISK_FULL)


def test_the_first_line_of_an_error_is_its_message() -> None:
    failure = failure_on("h1", Stage.LAUNCH, FlagPerfError("it failed\nbecause", remedy="do this"))
    assert (failure.message, failure.evidence, failure.remedy) == ("it failed", "because", "do this")


def test_credentials_of_a_command_are_not_told() -> None:
    words = ("--env=HF_TOKEN=word1", "--build-arg", "DB_PASSWORD=word2", "https://u:word3@host/x")
    failure = failure_on(
        "h1", Stage.LAUNCH, refused("docker", "run", *words, output="token=word4 is refused")
    )
    told = f"{failure.message} {failure.evidence} {failure.remedy}"
    assert [word for word in ("word1", "word2", "word3", "word4") if word in told] == []
    assert "is refused" in told


def test_the_users_own_end() -> None:
    failure = interrupted(Stage.TRAIN, "SIGTERM")
    assert (failure.verdict, failure.failure_class) == (Verdict.INTERRUPTED, FailureClass.INTERRUPTED)
    assert "stage train" in failure.message


@pytest.mark.parametrize("kind", FailureClass)
def test_every_failure_says_what_to_do_next(kind: FailureClass) -> None:
    """An error that knows no remedy leads to its chapter; one of a rank leads there behind what to do."""

    class KindError(FlagPerfError):
        failure_class = kind

    failure = failure_on("h1", Stage.LAUNCH, KindError("it failed", where="h1"))
    assert failure.failure_class is kind and failure.message == "it failed"
    assert failure.remedy == f"see docs/failures.md, {kind.value}"
    of_rank = remedy_of(kind, "h1", "rank1.out.log", "the last line")
    assert of_rank.endswith(f"read rank1.out.log in the node's folder; see docs/failures.md, {kind.value}")
    assert not set("{}") & set(of_rank), "a host that was not filled in"


def test_an_interrupted_round_says_how_to_go_on() -> None:
    assert "--continue-from" in interrupted(Stage.TRAIN, "Ctrl-C").remedy
    assert interrupted(Stage.IMAGE, "Ctrl-C").remedy == "start it again"  # nothing can have been saved
