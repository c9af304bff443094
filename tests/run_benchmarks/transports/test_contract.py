"""What every transport promises (Transport's docstrings), on this machine and through a real sshd."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from run_benchmarks.transports.base import CommandError, CommandTimeoutError, Completed, Transport, checked
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.process_table import argvs_meanwhile, pids_with
from tests.run_benchmarks.transports.conftest import Host, eventually
from utils.errors import FlagPerfError

MIB = 2**20
# Prints its arguments, each with its length, without any quoting of its own.
ECHO = "import os, sys; [os.write(1, b'%d:%s;' % (len(a), a)) for a in map(os.fsencode, sys.argv[1:])]"
AWKWARD = (
    *("", " ", "a b", "  two  ", "'", '"', "''", "it's", 'say "hi"', "\\", "\\\\", "a\\'b", "\\n"),
    *("\n", "line\nline\n", "\t", "\r", "$HOME", "${HOME}", "$(id)", "`id`", "$$", "$", "!", "!!", "!x"),
    *("*", "?", "[a-z]", "{a,b}", "~", "~root", "#", "# no comment", "a;b", "a&b", "a|b", ">x", "<x"),
    *("-", "--", "-n", "--x=y", "=", "a=b", "(", ")", "é", "日本語", "🏖️", "\u00a0", os.fsdecode(b"\xff\xfe")),
)


async def ignore(chunk: bytes) -> None:
    """A sink for output that does not matter."""


@pytest.mark.parametrize("code", [0, 1, 3, 125, 255])
def test_exit_code(host: Host, code: int) -> None:
    completed = host.use(lambda t: t.run(["sh", "-c", f"echo out; echo err >&2; exit {code}"]))
    assert (completed.returncode, completed.stdout, completed.stderr) == (code, "out\n", "err\n")
    assert completed.ok == (code == 0)
    assert completed.host == host.name


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_an_end_by_signal_is_128_plus_its_number(host: Host, number: signal.Signals) -> None:
    completed = host.use(lambda t: t.run(["sh", "-c", f"kill -{number.value} $$"]))
    assert completed.returncode == 128 + number


def test_of_output_without_bounds_the_end_is_held(host: Host) -> None:
    """A MiB of either stream, and more of what is asked for: many hosts may print without end at once."""
    script = f"head -c {4 * MIB} /dev/zero; echo the end; head -c {4 * MIB} /dev/zero >&2; echo too >&2"
    completed = host.use(lambda t: t.run(["sh", "-c", script]))
    assert len(completed.stdout) == MIB and completed.stdout.endswith("the end\n")
    assert len(completed.stderr) == MIB and completed.stderr.endswith("too\n")
    with pytest.raises(FlagPerfError, match="printed more than the 1048576 characters"):
        completed.whole_stdout()
    assert len(host.use(lambda t: t.run(["sh", "-c", script], held=3 * MIB)).stdout) == 3 * MIB
    just = host.use(lambda t: t.run(["sh", "-c", f"head -c {MIB} /dev/zero"]))
    assert just.whole_stdout() == "\0" * MIB


def test_what_lies_where_the_program_was_started_is_not_imported(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "contextlib.py").write_text("print('a stranger')\n")
    monkeypatch.chdir(tmp_path)
    for argv, script in ([["-c", "import contextlib"], b""], [["-"], b"import contextlib"]):
        completed = host.use(lambda t, words=argv, read=script: t.run([sys.executable, *words], stdin=read))
        assert (completed.returncode, completed.stdout) == (0, "")


def test_a_command_that_is_not_there_is_127(host: Host) -> None:
    completed = host.use(lambda t: t.run(["/nowhere/nothing", "x"]))
    assert completed.returncode == 127
    assert "nothing" in completed.stderr


def test_a_file_that_is_not_executable_is_126(host: Host) -> None:
    assert host.use(lambda t: t.run(["/etc/passwd"])).returncode == 126


def test_arguments_arrive_byte_for_byte(host: Host) -> None:
    expected = b"".join(b"%d:%s;" % (len(a), a) for a in map(os.fsencode, AWKWARD))
    received = bytearray()

    async def scenario(transport: Transport) -> None:
        async def keep(chunk: bytes) -> None:
            received.extend(chunk)

        await checked(transport, [sys.executable, "-c", ECHO, *AWKWARD], stdout=keep)

    host.use(scenario)
    assert bytes(received) == expected


def test_standard_input_is_empty_without_one(host: Host) -> None:
    assert host.use(lambda t: t.run(["cat"])).stdout == ""


def test_variables_arrive_unchanged_and_are_seen_nowhere(host: Host, log_lines: LogLines) -> None:
    """What the command reads from standard input is empty, and its own."""
    variables = {"WORDS": "hunter2 'x' \"$HOME\" `id` \\ ü", "LINES_OF_KEY": "hunter2\n two \n\n"}
    script = 'printf "%s|" "$WORDS" "$LINES_OF_KEY"; cat; cat "/proc/$$/cmdline" "/proc/$PPID/cmdline" >&2'
    with argvs_meanwhile() as argvs:
        done = host.use(lambda t: t.run(["sh", "-c", script + "; sleep 0.3"], variables=variables))
    assert done.stdout == "".join(f"{value}|" for value in variables.values())
    assert done.argv == ("sh", "-c", script + "; sleep 0.3")
    assert any("LINES_OF_KEY" in argv for argv in argvs)
    assert [argv for argv in argvs if "hunter2" in argv] == []
    assert "hunter2" not in done.stderr + log_lines.text


def test_bytes_pass_unchanged_both_ways(host: Host) -> None:
    data = bytes(range(256)) * 1000
    received = bytearray()

    async def scenario(transport: Transport) -> str:
        async def keep(chunk: bytes) -> None:
            received.extend(chunk)

        return (await checked(transport, ["cat"], stdin=data, stdout=keep)).stdout

    assert host.use(scenario) == ""
    assert bytes(received) == data


def test_output_that_is_not_utf8_is_kept_readable(host: Host) -> None:
    assert host.use(lambda t: t.run(["printf", r"a\377b"])).stdout == "a\ufffdb"


def test_a_line_is_handed_on_while_its_command_runs(host: Host) -> None:
    """As a server prints the port at which it is then asked."""

    async def scenario(transport: Transport) -> str:
        printed, come = bytearray(), asyncio.Event()

        async def take(chunk: bytes) -> None:
            printed.extend(chunk)
            if printed.endswith(b"\n"):
                come.set()

        async def once_it_has_come() -> AsyncIterator[bytes]:
            await come.wait()
            yield b"asked"

        script = "echo 4711; cat >&2"
        return (
            await transport.run(["sh", "-c", script], stdin=once_it_has_come(), stdout=take, timeout=60)
        ).stderr

    assert host.use(scenario) == "asked"


def test_a_slow_reader_holds_the_command_back(host: Host, tmp_path: Path) -> None:
    """50 MB: the command is stopped by the full pipe while the reader sleeps, and nothing is lost."""
    total, progress = 50 * MIB, tmp_path / "progress"
    progress.write_text("0")
    code = (
        "import os, sys\nfor i in range(50):\n os.write(1, bytes([i]) * 2**20) == 2**20 or sys.exit('short')\n"
        f" open({str(progress)!r}, 'w').write(str(i + 1))"
    )
    digest, size = hashlib.sha256(), 0
    expected = hashlib.sha256(b"".join(bytes([i]) * MIB for i in range(50)))

    async def read_slowly(chunk: bytes) -> None:
        nonlocal size
        if size == 0:
            await eventually(lambda: standing_still(progress))
            assert int(progress.read_text() or 0) < 25
        size += len(chunk)
        digest.update(chunk)

    host.use(lambda t: checked(t, [sys.executable, "-c", code], stdout=read_slowly))
    assert (size, digest.hexdigest()) == (total, expected.hexdigest())


async def standing_still(progress: Path) -> bool:
    """Whether the file does not change any more."""
    before = progress.read_text()
    await asyncio.sleep(0.4)
    return progress.read_text() == before


def test_a_slow_command_holds_the_writer_back(host: Host, tmp_path: Path) -> None:
    """50 MB: the chunks are asked for no faster than the command takes them."""
    go, asked = tmp_path / "go", 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal asked
        for number in range(50):
            asked = number + 1
            yield bytes([number]) * MIB

    async def scenario(transport: Transport) -> str:
        script = f"until [ -e {go} ]; do sleep 0.02; done; sha256sum"
        running = asyncio.ensure_future(checked(transport, ["sh", "-c", script], stdin=chunks()))
        before = -1
        while before != asked:
            before = asked
            await asyncio.sleep(0.4)
        assert asked < 25
        go.touch()
        return (await running).stdout.split()[0]

    expected = hashlib.sha256(b"".join(bytes([i]) * MIB for i in range(50))).hexdigest()
    assert host.use(scenario) == expected


def test_a_command_need_not_read_its_input(host: Host) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(MIB)

    completed = host.use(lambda t: t.run(["sh", "-c", "head -c 10 >/dev/null; exit 4"], stdin=endless()))
    assert completed.returncode == 4


def test_a_timeout_ends_the_command_and_what_it_started(host: Host) -> None:
    mark = f"flagperf-{uuid.uuid4()}"
    # one that does not mind SIGTERM, and one that has lost its parent
    script = "trap '' TERM; (trap '' TERM; sleep 40; :) & sleep 40; :"

    async def scenario(transport: Transport) -> None:
        with pytest.raises(CommandTimeoutError, match=r"not done after 0\.5 s") as caught:
            await transport.run(["sh", "-c", script, mark], timeout=0.5)
        assert caught.value.where == host.name
        assert pids_with(mark) == []
        assert (await transport.run(["echo", "still here"])).stdout == "still here\n"

    host.use(scenario)


def test_no_name_of_a_process_hinders_ending_a_command() -> None:
    """Such as a name in UTF-8 that the kernel has cut at its 15th byte; any user of the host can have one."""
    mark, comm = f"flagperf-{uuid.uuid4()}", Path("/proc/self/comm")
    before = comm.read_bytes()
    comm.write_bytes(b"a\xe8\xae")
    try:
        with pytest.raises(CommandTimeoutError):
            asyncio.run(
                LocalTransport(grace_s=0.1).run(
                    ["sh", "-c", 'trap "" TERM; sleep 9; sleep 9', mark], timeout=0.3
                )
            )
    finally:
        comm.write_bytes(before.rstrip())
    assert pids_with(mark) == []


def test_cancelling_ends_the_command(host: Host) -> None:
    mark = f"flagperf-{uuid.uuid4()}"

    async def scenario(transport: Transport) -> None:
        running = asyncio.ensure_future(transport.run(["sh", "-c", "sleep 40; :", mark]))
        await eventually(lambda: bool(pids_with(mark)))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert pids_with(mark) == []

    host.use(scenario)


def test_cancelling_at_once_leaves_nothing(host: Host) -> None:
    """Whatever moment of starting the command the cancellation meets."""
    mark = f"flagperf-{uuid.uuid4()}"

    async def scenario(transport: Transport) -> None:
        await transport.run(["true"])
        script = 'sh -c "sleep 40; :" "$0" & wait'
        for moment in range(12):
            running = asyncio.ensure_future(transport.run(["sh", "-c", script, mark]))
            await asyncio.sleep(moment * 0.002)
            running.cancel()
            done, _ = await asyncio.wait({running}, timeout=20)  # before the child ends by itself
            assert done
            assert running.cancelled()
        await eventually(lambda: pids_with(mark) == [])

    host.use(scenario)


def test_cancelling_ends_a_command_that_writes_faster_than_it_is_read(host: Host, tmp_path: Path) -> None:
    mark, progress = f"flagperf-{uuid.uuid4()}", tmp_path / "progress"
    code = f"import os\nwhile os.write(1, bytes(2**16)): open({str(progress)!r}, 'a').write('.')"

    async def stuck(chunk: bytes) -> None:
        await asyncio.Event().wait()

    async def scenario(transport: Transport) -> None:
        running = asyncio.ensure_future(transport.run([sys.executable, "-c", code, mark], stdout=stuck))
        await eventually(progress.exists)
        await eventually(lambda: standing_still(progress))
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=30)
        assert done
        await eventually(lambda: pids_with(mark) == [])

    host.use(scenario)


def test_a_timeout_does_not_wait_for_what_has_left_the_session_and_holds_the_pipes() -> None:
    mark = f"flagperf-{uuid.uuid4()}"
    script = 'setsid sh -c "sleep 60; :" "$0" <&0 & exec sleep 60'

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(2**20)

    async def scenario() -> None:
        running = asyncio.ensure_future(
            LocalTransport(grace_s=0.1).run(["sh", "-c", script, mark], stdin=endless(), timeout=1)
        )
        done, _ = await asyncio.wait({running}, timeout=30)
        assert done
        with pytest.raises(CommandTimeoutError):
            await running

    try:
        asyncio.run(scenario())
    finally:
        for pid in pids_with(mark):
            os.killpg(pid, signal.SIGKILL)


def test_an_error_of_the_sink_ends_the_command(host: Host) -> None:
    mark = f"flagperf-{uuid.uuid4()}"

    async def full(chunk: bytes) -> None:
        raise OSError(28, "No space left on device")

    async def scenario(transport: Transport) -> None:
        with pytest.raises(OSError, match="No space left"):
            await transport.run(["sh", "-c", "while :; do echo x; sleep 0.1; done", mark], stdout=full)
        assert pids_with(mark) == []

    host.use(scenario)


def test_an_error_of_the_input_ends_the_command(host: Host) -> None:
    mark = f"flagperf-{uuid.uuid4()}"

    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise ConnectionResetError("the other host")

    async def scenario(transport: Transport) -> None:
        with pytest.raises(ConnectionResetError, match="the other host"):
            await transport.run(["sh", "-c", "sleep 40; :", mark], stdin=broken())
        assert pids_with(mark) == []

    host.use(scenario)


def test_many_commands_at_once(host: Host) -> None:
    async def scenario(transport: Transport) -> list[str]:
        runs = (transport.run(["sh", "-c", f"sleep 0.1; echo {number}"]) for number in range(20))
        return [completed.stdout for completed in await asyncio.gather(*runs)]

    assert host.use(scenario) == [f"{number}\n" for number in range(20)]


def test_checked_raises_with_what_the_command_said(host: Host) -> None:
    with pytest.raises(CommandError) as caught:
        host.use(lambda t: checked(t, ["sh", "-c", "echo no room >&2; exit 9"], remedy="make room"))
    assert caught.value.completed.returncode == 9
    assert "no room" in str(caught.value)
    assert "make room" in str(caught.value)


def test_an_error_shows_of_a_long_script_its_first_words() -> None:
    script = "first words of " + "a script " * 100
    error = CommandError(Completed("h1", ("sh", "-c", script, "/work"), 3, "", "no room"))
    first, second = str(error).splitlines()
    assert "exit code 3: sh -c 'first words of a script " in first and first.endswith("in all)' /work")
    assert len(first) < 300 and second.strip() == "| no room"


def test_closing_twice_is_no_error(host: Host) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.run(["true"])
        await transport.close()
        await transport.close()

    host.use(scenario)


def test_every_command_is_logged_with_its_end_and_without_credentials(
    host: Host, log_lines: LogLines
) -> None:
    host.use(lambda t: t.run(["sh", "-c", "exit 3", "sh", "--password=hunter2"]))
    with pytest.raises(CommandTimeoutError):
        host.use(lambda t: t.run(["sleep", "100"], timeout=0.2))
    (first,) = [line for line in log_lines.messages if "exit 3" in line]
    assert first.startswith(f"{host.name}: sh -c 'exit 3' sh") and ": exit code 3 after " in first
    assert "hunter2" not in log_lines.text
    assert f"{host.name}: sleep 100: no end is known after" in log_lines.text
