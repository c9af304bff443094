"""Commands of one moment as one: each has its own end, as if it had gone by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from run_benchmarks.transports import together
from run_benchmarks.transports.base import CommandTimeoutError, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.ssh.remote import _group
from run_benchmarks.transports.together import Together
from tests.run_benchmarks.transports.conftest import Host


class Counted(LocalTransport):
    """This machine; `sent` are the commands that it gets."""

    def __init__(self) -> None:
        super().__init__("node1")
        self.sent: list[tuple[str, ...]] = []

    async def run(self, argv: Any, **options: Any) -> Completed:
        self.sent.append(tuple(argv))
        return await super().run(argv, **options)


def run_all(inner: LocalTransport, *argvs: list[str], **options: Any) -> list[Any]:
    """What each of the commands comes to, all begun at once."""

    async def run() -> list[Any]:
        host = Together(inner)
        return await asyncio.gather(*(host.run(argv, **options) for argv in argvs), return_exceptions=True)

    return asyncio.run(run())


def test_each_has_its_own_end() -> None:
    inner = Counted()
    words = ["", "a b", "it's", "two\nlines", "$HOME", "*", "-n"]
    argvs = [
        ["printf", "%s|", *words],
        ["sh", "-c", "echo out; echo err >&2; exit 3"],
        ["flagperf-no-such-command"],
        ["sh", "-c", "cat; kill -KILL $$"],
        ["printf", "no end of line"],
        ["true"],
    ]
    ends = run_all(inner, *argvs)
    assert len(inner.sent) == 1
    assert [end.returncode for end in ends] == [0, 3, 127, 137, 0, 0]
    assert [end.stdout for end in ends] == ["|".join(words) + "|", "out\n", "", "", "no end of line", ""]
    assert ends[1].stderr == "err\n" and ends[0].stderr == "" and ends[2].stderr.startswith("sh: ")
    assert [end.argv for end in ends] == [tuple(argv) for argv in argvs]


def test_one_alone_goes_as_it_is_and_so_does_what_reads() -> None:
    inner = Counted()
    assert run_all(inner, ["true"])[0].ok
    assert inner.sent == [("true",)]
    assert [end.stdout for end in run_all(inner, ["cat"], ["cat"], stdin=b"x")] == ["x", "x"]
    assert inner.sent[1:] == [("cat",), ("cat",)]


def test_one_that_hangs_costs_the_others_nothing_but_a_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "PATIENCE_S", 0.3)
    first, hanging, last = run_all(Counted(), ["echo", "1"], ["sleep", "30"], ["echo", "3"], timeout=0.5)
    assert (first.stdout, last.stdout) == ("1\n", "3\n")
    assert isinstance(hanging, CommandTimeoutError) and "sleep 30" in hanging.message


def test_what_prints_too_much_loses_nothing_of_the_others() -> None:
    long, short = run_all(Counted(), ["sh", "-c", "yes | head -c 3000"], ["echo", "1"], held=1000)
    assert (len(long.stdout), long.is_cut, short.stdout) == (1000, True, "1\n")


def test_a_lost_host_is_lost_to_all_at_the_first_try() -> None:
    class Lost(Counted):
        async def run(self, argv: Any, **options: Any) -> Completed:
            self.sent.append(tuple(argv))
            raise TransportError("no route", where=self.host)

    inner = Lost()
    ends = run_all(inner, ["true"], ["false"], ["date"])
    assert len(inner.sent) == 1 and all(isinstance(end, TransportError) for end in ends)


def test_who_is_cancelled_takes_nobody_along() -> None:
    async def scenario() -> str:
        host = Together(Counted())
        first = asyncio.create_task(host.run(["sh", "-c", "sleep 0.2; echo 1"]))
        second = asyncio.create_task(host.run(["echo", "2"]))
        await asyncio.sleep(0.1)
        first.cancel()
        return (await asyncio.wait_for(second, 10)).stdout

    assert asyncio.run(scenario()) == "2\n"


def test_a_host_by_ssh_answers_the_same(host: Host) -> None:
    async def scenario(transport: Any) -> list[Completed]:
        await transport.open()
        near = transport.together()
        return list(
            await asyncio.gather(
                near.run(["echo", "a b"]), near.run(["sh", "-c", "exit 4"]), near.run(["id"])
            )
        )

    first, second, third = host.use(scenario)
    assert (first.stdout, second.returncode) == ("a b\n", 4) and third.stdout.startswith("uid=")


@pytest.mark.parametrize("number", [b"1", b"0", b"-1", b"", b"x" * 100, b"7" * 5000])
def test_no_host_may_say_that_a_command_is_every_process(number: bytes) -> None:
    """What ends a command ends its group, and the group 1 is all that a user has there."""
    with pytest.raises(TransportError, match="process group"):
        _group(number, "h1")
    assert _group(b"4711", "h1") == 4711


def test_whatever_stands_behind_a_mark_it_is_an_exit_code_or_none() -> None:
    """Python refuses to read a number of more than 4,300 digits."""
    codes = ["0", "127", "9" * 5_000, "x", ""]
    printed = "".join(f"out\nmark {code}\n" for code in codes)
    assert [code for _, code in together._parted(printed, "\nmark ")] == [0, 127, -1, -1, -1]
