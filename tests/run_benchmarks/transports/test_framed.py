"""What a command prints is told from what others print around it, however its output is cut into chunks."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterable

from run_benchmarks.transports.framed import BEGIN, END, NOISE_BYTES, RARE, Framed, FramedCommand

PRINTED = b"a\n" + RARE.encode() * 3 + b"\0\xff\n no end"


def taken(framed: Framed, chunks: Iterable[bytes]) -> None:
    async def take() -> None:
        for chunk in chunks:
            await framed.take(chunk)

    asyncio.run(take())


def framed_into(given: bytearray) -> Framed:
    async def keep(chunk: bytes) -> None:
        given.extend(chunk)

    return Framed(keep)


def test_wherever_the_output_is_cut() -> None:
    for size in range(1, 60):
        given = bytearray()
        framed = framed_into(given)
        mark = framed.mark.encode()
        whole = b"welcome\n" + mark + PRINTED + mark + b"7 " + mark + b"\nbye\n"
        taken(framed, (whole[at : at + size] for at in range(0, len(whole), size)))
        assert (bytes(given), framed.code, framed.noise) == (PRINTED, 7, b"welcome\n"), size
        assert not framed.stays


def test_without_the_whole_end_there_is_no_code() -> None:
    framed = framed_into(bytearray())
    mark = framed.mark.encode()
    taken(framed, [mark + PRINTED + mark + b"0 "])
    assert framed.code is None


def test_what_never_ends_behind_the_end_is_not_kept() -> None:
    framed = framed_into(bytearray())
    mark = framed.mark.encode()
    taken(framed, [mark + mark, *[b"x" * NOISE_BYTES] * 9])
    assert len(framed._held) == NOISE_BYTES and framed.code is None
    taken(framed, [b"7 " + mark, *[b"x" * NOISE_BYTES] * 9, b"killed"])
    assert len(framed.rest) == NOISE_BYTES and framed.rest.endswith("killed")


def test_a_shell_frames_a_command() -> None:
    given, errors = bytearray(), bytearray()
    framed = framed_into(given)
    script = f'mark=$1; {BEGIN}\nsh -c "echo out; echo err >&2; exit 9"; code=$? stays=yes\n{END}'
    done = subprocess.run(["sh", "-c", script, "sh", framed.mark], capture_output=True)
    taken(framed, [done.stdout])
    assert (bytes(given), framed.code, framed.stays) == (b"out\n", 9, True)

    async def keep(chunk: bytes) -> None:
        errors.extend(chunk)

    of_errors = Framed(keep, framed.mark)
    taken(of_errors, [b"noise\n" + done.stderr])
    assert (bytes(errors), of_errors.noise) == (b"err\n", b"noise\n")


def test_a_command_has_ended_where_both_of_its_frames_have() -> None:
    given = bytearray()

    async def keep(chunk: bytes) -> None:
        given.extend(chunk)

    async def take() -> None:
        command = FramedCommand(["cat", "a b"], keep)
        assert command.words == b"cat 'a b'"
        mark = command.mark.encode()
        await command.take(b"out noise " + mark + b"out" + mark + b"3 " + mark)
        await command.take_errors(b"noise " + mark + b"err" + mark)
        assert (command.code, bytes(given), command.said) == (None, b"out", "errout noise noise ")
        await command.take_errors(b"3 " + mark + b"\nlast")
        await command.ended()
        assert (command.code, command.stays, command.errors) == (3, False, "err")
        assert command.said.endswith("last")

    asyncio.run(take())
