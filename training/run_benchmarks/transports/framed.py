"""A command whose output passes through others' hands: where it begins and ends in it, and its exit code.

What carries a command to a host may print before it and behind it, end before it does, and exit with a code of its own.
So the command runs in a shell that prints a mark before and behind all of its output, and its exit code behind that.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
from collections.abc import Sequence

from run_benchmarks.transports.base import ByteSink, Tail
from utils.numbers import whole

# $mark, and the command behind it, in a shell of its own: there `cd`, say, is a program and no word of this
# shell. $stays: a word where this shell goes on for what the command has left. A line's end is for who waits for one.
BEGIN = """printf %s "$mark"; printf %s "$mark" >&2"""
END = """end() { printf '%s%s %s%s\\n' "$mark" "$code" "$stays" "$mark"; }; end; end >&2"""
# What a mark begins with. Of what a command prints only this much is ever held back, so that its last line, which may
# be the last for hours, is seen at once.
RARE = "\x1e"
NOISE_BYTES = 2**16  # that is kept of what others print before the command


class Framed:
    """A sink for framed output, which hands on what the command printed.

    code: its exit code, once all of its output has come. ended: set then. stays: whether its shell goes on then.
    noise: what others printed before it.
    """

    def __init__(self, sink: ByteSink, mark: str = "") -> None:
        self.mark = mark or f"{RARE}{secrets.token_hex(16)}"
        self.code: int | None = None
        self.stays, self.ended = False, asyncio.Event()
        self.noise = b""
        self._marks, self._sink, self._held = 0, sink, b""

    @property
    def rest(self) -> str:
        """What has come behind the last mark."""
        return self._held.decode(errors="replace") if self.ended.is_set() else ""

    async def take(self, chunk: bytes) -> None:
        """One more chunk."""
        mark = self.mark.encode()
        *parts, self._held = (self._held + chunk).split(mark)
        for part in parts:
            await self._give(part)
            self._marks += 1
        if self._marks < 2:
            ready = _before_mark(self._held, mark)
            await self._give(self._held[:ready])
            self._held = self._held[ready:]
        else:  # behind the end, where no more than a few words of what carries it are expected
            self._held = self._held[-NOISE_BYTES:]

    async def _give(self, part: bytes) -> None:
        """What stands before the first mark, between two of them, or behind the last."""
        if self._marks == 0:
            self.noise = (self.noise + part)[-NOISE_BYTES:]
        elif self._marks == 1 and part:
            await self._sink(part)
        elif self._marks == 2:
            code, _, stays = part.decode(errors="replace").partition(" ")
            self.code, self.stays = whole(code), bool(stays)
            self.ended.set()


class FramedCommand:
    """A command in both frames: what it prints goes to `sink`, of its errors the end is kept.

    mark: what frames it. words: it, as a shell reads it.
    """

    def __init__(self, argv: Sequence[str], sink: ByteSink) -> None:
        self._errors, self._out = Tail(), Framed(sink)
        self._err = Framed(self._errors.take, self._out.mark)
        self.mark, self.words = self._out.mark, os.fsencode(shlex.join(argv))
        self.take, self.take_errors = self._out.take, self._err.take

    @property
    def has_ended(self) -> bool:
        """Whether it has, and all that it printed is here."""
        return self._out.ended.is_set() and self._err.ended.is_set()

    async def ended(self) -> None:
        """Wait until it has."""
        await self._out.ended.wait()
        await self._err.ended.wait()

    @property
    def code(self) -> int | None:
        """Its exit code; None where its end is not known."""
        return self._out.code if self.has_ended else None

    @property
    def stays(self) -> bool:
        """Whether its shell goes on."""
        return self._out.stays

    @property
    def errors(self) -> str:
        """The end of its standard error."""
        return self._errors.text

    @property
    def said(self) -> str:
        """That, with what others have said before and behind it: where its end is not known, why that is so."""
        return self.errors + (self._out.noise + self._err.noise).decode(errors="replace") + self._err.rest


def _before_mark(held: bytes, mark: bytes) -> int:
    """How many bytes stand before what may be the beginning of a mark."""
    at = held.rfind(mark[:1], max(0, len(held) - len(mark) + 1))
    return at if at >= 0 and mark.startswith(held[at:]) else len(held)
