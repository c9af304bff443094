"""A step of a Slurm job with a shell in it that runs one command after the other.

To begin a step costs more than most commands: an `srun` here, a transaction of slurmctld, a line of its accounting.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable

from run_benchmarks.transports.base import ByteSink, ByteSource, Tail
from run_benchmarks.transports.framed import BEGIN, END, FramedCommand
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.streams import chunks

# Where Slurm tracks a step's processes by a control group, all that are left in it are killed when the step ends, also
# units that are to outlive the command which started them. So the step stays as long as any is left; it looks four
# times a minute, which costs nothing. Where Slurm tracks them otherwise there is no such group, and no need.
LEFT = r"""group=
while IFS=: read -r _ kind path; do
  case $kind:$path in
    freezer:*/step_*) group=/sys/fs/cgroup/freezer$path/cgroup.procs ;;
    :*/step_*) group=/sys/fs/cgroup$path/cgroup.procs ;;
  esac
done </proc/self/cgroup
left() { while read -r pid; do [ "$pid" = $$ ] || return 0; done <"$group"; return 1; }"""
# A command comes as a line (the mark, how many bytes of words, and of input behind them, or `all`: what follows to the
# end) and its words as a shell reads them. What it has not read of its input is taken away: the next command stands
# behind it, and a step that ends before would take what was printed, and has not arrived, with it.
SCRIPT = f"""exec 3<&0 </dev/null
{LEFT}
while read -r mark size input <&3; do
  [ "$mark" ] || continue
  eval "set -- $(head -c "$size" <&3)"
  {BEGIN}
  case $input in
    all) (exec "$@" <&3 3<&-) ;;
    0) (exec "$@" 3<&-) ;;
    *) head -c "$input" <&3 | {{ (exec "$@" 3<&-); code=$?; cat >/dev/null; exit "$code"; }} ;;
  esac
  code=$?; stays=
  [ -r "$group" ] && left && stays=stays
  {END}
  [ "$input" != all ] && [ -z "$stays" ] || break
done
cat <&3 >/dev/null
exec 3<&-
while [ "$stays" ] && left; do sleep 15; done
"""
# What ends a step reaches its shell and its command in any order: a shell that is hit last has told of the command's
# end as of one by a signal. It is over then in a moment.
BY_SIGNAL = (128 + signal.SIGTERM, 128 + signal.SIGKILL)
SIGNAL_S = 2.0


class Step:
    """A step that has begun; `name` is what Slurm calls it.

    stays: for what a command has left running: it takes no further one. may_go_on: it does.
    """

    def __init__(self, here: LocalTransport, name: str, srun: tuple[str, ...]) -> None:
        self.name, self.stays, self._is_spent = name, False, False
        self._sent: asyncio.Queue[ByteSource | None] = asyncio.Queue()
        self._command = FramedCommand((), Tail().take)
        self._is_answered = True
        self._task = asyncio.ensure_future(here._run(srun, self._input(), self._take, self._take_errors))

    @property
    def is_over(self) -> bool:
        """Whether srun has ended."""
        return self._task.done()

    @property
    def may_go_on(self) -> bool:
        """Whether it takes a further command."""
        return not (self.stays or self._is_spent or self.is_over)

    def add_done_callback(self, callback: Callable[[Step], None]) -> None:
        """Call `callback` with this step once it is over."""
        self._task.add_done_callback(lambda _: callback(self))

    async def run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int | None, str]:
        """Run a command: its exit code and standard error; None, and all that srun said, where its end is not known."""
        command = self._command = FramedCommand(argv, stdout)
        content = b"" if stdin is None else stdin
        size, beginning = (len(content), content) if isinstance(content, bytes) else ("all", b"")
        line = f"{command.mark} {len(command.words)} {size}\n".encode()
        self._sent.put_nowait(line + command.words + beginning)
        self._is_answered = False
        if not isinstance(content, bytes):
            self._sent.put_nowait(content)
            self.finish()
        await self._ended()
        if not command.has_ended:
            self._task.result()  # raises what the caller's own input or output has raised
            return None, command.said
        self.stays = command.stays
        if command.code in BY_SIGNAL and self.may_go_on:
            await asyncio.wait({self._task}, timeout=SIGNAL_S)
            if self.is_over:
                return None, command.said
        return command.code, command.errors

    def finish(self) -> None:
        """Let it end, as no command comes any more."""
        if not self._is_spent:
            self._is_spent = True
            self._sent.put_nowait(None)

    async def close(self, limit_s: float) -> None:
        """End it: by itself, or after `limit_s`; what stays at once."""
        self.finish()
        if not self.stays:
            await asyncio.wait({self._task}, timeout=limit_s)
        await self.kill()

    async def kill(self) -> None:
        """End it with all that runs in it."""
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # seen: of a command that has been told of it, or of none

    async def _ended(self) -> None:
        """Wait until the command has ended, or the step."""
        ended = asyncio.ensure_future(self._command.ended())
        try:
            await asyncio.wait({self._task, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()

    async def _input(self) -> AsyncIterator[bytes]:
        while (source := await self._sent.get()) is not None:
            async for chunk in chunks(source):
                yield chunk
                if self._is_spent and self._command.has_ended:
                    return

    async def _take(self, chunk: bytes) -> None:
        self._answer()
        await self._command.take(chunk)

    async def _take_errors(self, chunk: bytes) -> None:
        self._answer()
        await self._command.take_errors(chunk)

    def _answer(self) -> None:
        """Send an empty line when the first part of a command's output is here.

        What a node sends in small parts waits for the receipt of the part before (Nagle), which this machine puts off
        by 40 ms unless it has something to send. A second line would hold up the next command in the same way.
        """
        if not self._is_answered and not self._is_spent:
            self._sent.put_nowait(b"\n")
        self._is_answered = True
