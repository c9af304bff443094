"""What every runtime promises (Runtime's docstrings), with real containers and real processes."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes import base, open_runtime, process
from run_benchmarks.runtimes.base import Mount
from run_benchmarks.transports.base import CommandError, CommandTimeoutError, Transport, TransportError
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.ssh import SshTransport
from tests.run_benchmarks.process_table import argvs_meanwhile, pids_with
from tests.run_benchmarks.runtimes.conftest import Bench, settings
from tests.run_benchmarks.transports.conftest import eventually, live_as, need_sshd
from tests.run_benchmarks.transports.sshd import Sshd
from utils.errors import FlagPerfError

NOBODY = 65534
FOREVER = "while :; do sleep 0.1; done"


@pytest.mark.parametrize("code", [0, 3])
def test_exit_code_and_output(bench: Bench, code: int) -> None:
    unit = bench.unit(f"echo out; echo err >&2; exit {code}")
    ended, output = bench.end_of(unit)
    assert ended == code
    assert sorted(output.split()) == ["err", "out"]


def test_arguments_and_environment_arrive_unchanged(bench: Bench) -> None:
    awkward = "two  words, 'quotes' \"double\" $HOME `id` \\ *"
    unit = bench.unit('echo "$1"; echo "$WORDS"; pwd', awkward, env={"WORDS": awkward}, workdir="/dev")
    assert bench.end_of(unit) == (0, f"{awkward}\n{awkward}\n/dev")


def test_secrets_reach_the_unit_and_no_list_of_processes(bench: Bench) -> None:
    key = "hunter2 'a' \"$HOME\"\n  second line\n"
    script = (
        'printf "%s\\n" "$A_KEY" | while IFS= read -r line; do echo "[$line]"; done; echo "$WORDS"; sleep 1'
    )
    unit = bench.unit(script, secrets={"A_KEY": key, "WORDS": "a=b c"})
    with argvs_meanwhile() as argvs:
        assert bench.end_of(unit) == (0, "[hunter2 'a' \"$HOME\"]\n[  second line]\n[]\na=b c")
    assert any(unit.name in argv for argv in argvs)
    assert [argv for argv in argvs if "hunter2" in argv or "second line" in argv] == []


def test_last_output_is_the_end(bench: Bench) -> None:
    # it stays for a moment: what Podman's containers print right before their end may be lost
    unit = bench.unit("for i in 1 2 3 4 5 6; do echo line$i; done; sleep 1")
    bench.code_of(unit)
    assert bench.use(lambda t: bench.runtime.last_output(t, unit.name, 2)) == "line5\nline6"
    assert bench.use(lambda t: bench.runtime.last_output(t, "no-such-unit")) == ""


def test_a_killed_main_process_is_137_and_the_unit_is_over(bench: Bench) -> None:
    """What it leaves behind is ended with it."""
    mark = f"main-{bench.run}"
    unit = bench.unit(f"sh -c '{FOREVER}' rest-$1 & exec sh -c '{FOREVER}' main-$1", bench.run)

    async def scenario(transport: Transport) -> int:
        await bench.runtime.start(transport, unit)
        await eventually(lambda: bool(pids_with(mark)) and bool(pids_with(f"rest-{bench.run}")))
        waiting = asyncio.ensure_future(bench.runtime.wait(transport, unit.name))
        for pid in pids_with(mark):
            os.kill(pid, signal.SIGKILL)
        return await waiting

    assert bench.use(scenario) == 137
    assert pids_with(f"rest-{bench.run}") == []


def test_several_may_wait_and_ask_again(bench: Bench) -> None:
    unit = bench.unit("sleep 0.5; exit 6")

    async def scenario(transport: Transport) -> list[int]:
        await bench.runtime.start(transport, unit)
        codes = await asyncio.gather(*(bench.runtime.wait(transport, unit.name) for _ in range(3)))
        return [*codes, await bench.runtime.wait(transport, unit.name)]

    assert bench.use(scenario) == [6] * 4


def test_giving_up_waiting_does_not_end_the_unit(bench: Bench) -> None:
    unit = bench.unit(FOREVER)

    async def scenario(transport: Transport) -> bool:
        await bench.runtime.start(transport, unit)
        waiting = asyncio.ensure_future(bench.runtime.wait(transport, unit.name))
        await asyncio.sleep(0.3)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return (await bench.runtime.list_units(transport, bench.run))[0].running

    assert bench.use(scenario)


def test_stop_lets_the_unit_end_by_itself(bench: Bench) -> None:
    script = f"trap 'exit 5' TERM; echo ready; {FOREVER}"

    async def scenario(transport: Transport) -> int:
        unit = bench.unit(script)
        await bench.runtime.start(transport, unit)
        await wait_for_output(bench, transport, unit.name)
        await bench.runtime.stop(transport, unit.name, 20)
        return await bench.runtime.wait(transport, unit.name)

    assert bench.use(scenario) == 5


def test_stop_kills_what_does_not_end(bench: Bench) -> None:
    mark = f"stubborn-{bench.run}"

    async def scenario(transport: Transport) -> int:
        unit = bench.unit(f"trap '' TERM; sh -c \"trap '' TERM; {FOREVER}\" $1 & echo ready; {FOREVER}", mark)
        await bench.runtime.start(transport, unit)
        await wait_for_output(bench, transport, unit.name)
        await bench.runtime.stop(transport, unit.name, 1)
        return await bench.runtime.wait(transport, unit.name)

    assert bench.use(scenario) == 137
    assert pids_with(mark) == []


async def wait_for_output(bench: Bench, transport: Transport, name: str) -> None:
    async def printed() -> bool:
        return bool(await bench.runtime.last_output(transport, name))

    await eventually(printed)


def test_stopping_what_has_ended_or_never_was_is_no_error(bench: Bench) -> None:
    unit = bench.unit("exit 4")
    bench.end_of(unit)

    async def scenario(transport: Transport) -> int:
        await bench.runtime.stop(transport, unit.name, 1)
        await bench.runtime.stop(transport, "no-such-unit", 1)
        return await bench.runtime.wait(transport, unit.name)

    assert bench.use(scenario) == 4


def test_waiting_for_what_never_was_is_an_error(bench: Bench) -> None:
    with pytest.raises(CommandError):
        bench.use(lambda t: bench.runtime.wait(t, "no-such-unit"))


def test_a_name_that_is_taken_is_an_error(bench: Bench) -> None:
    async def scenario(transport: Transport) -> int:
        await bench.runtime.start(transport, bench.unit("exit 8"))
        with pytest.raises(CommandError, match=r"exists|already in use"):
            await bench.runtime.start(transport, bench.unit("exit 9"))
        return await bench.runtime.wait(transport, bench.unit("").name)

    assert bench.use(scenario) == 8


def test_units_are_listed_by_run_with_their_labels(bench: Bench) -> None:
    other = f"{bench.run}-other"
    labels = {
        "flagperf.run": bench.run,
        "flagperf.case": "bert:pytorch_1.8:A100:1:8:1",
        "flagperf.node_rank": "0",
    }

    async def scenario(transport: Transport) -> None:
        await bench.runtime.start(transport, bench.unit(FOREVER, name="a", labels=labels))
        await bench.runtime.start(transport, bench.unit("exit 1", name="b"))
        await bench.runtime.start(transport, bench.unit(FOREVER, name="c", run=other))
        await bench.runtime.wait(transport, bench.unit("", name="b").name)
        mine = {unit.name: unit for unit in await bench.runtime.list_units(transport, bench.run)}
        everyones = {unit.name for unit in await bench.runtime.list_units(transport)}
        assert set(mine) == {f"{bench.run}-a", f"{bench.run}-b"}
        assert {*mine, f"{other}-c"} <= everyones
        assert labels.items() <= mine[f"{bench.run}-a"].labels.items()
        assert mine[f"{bench.run}-a"].running
        assert not mine[f"{bench.run}-b"].running

    bench.use(scenario)


def test_remove_all_removes_this_run_and_no_other(bench: Bench) -> None:
    """Of this run whatever there is; of a run whose name only begins alike nothing."""
    other = f"{bench.run}-other"
    mark = f"forever-{bench.run}"

    async def scenario(transport: Transport) -> None:
        await bench.runtime.start(transport, bench.unit(f"sh -c '{FOREVER}' $1", mark, name="a"))
        await bench.runtime.start(transport, bench.unit("exit 1", name="b"))
        await bench.runtime.start(transport, bench.unit(FOREVER, name="c", run=other))
        await bench.runtime.wait(transport, bench.unit("", name="b").name)
        removed = await bench.runtime.remove_all(transport, bench.run)
        assert sorted(removed) == [f"{bench.run}-a", f"{bench.run}-b"]
        assert pids_with(mark) == []
        assert await bench.runtime.list_units(transport, bench.run) == ()
        assert [unit.running for unit in await bench.runtime.list_units(transport, other)] == [True]
        assert await bench.runtime.remove_all(transport, bench.run) == ()
        # the name is free again
        await bench.runtime.start(transport, bench.unit("exit 0", name="a"))

    bench.use(scenario)


def test_remove_all_with_a_grace_lets_units_end(bench: Bench) -> None:
    last_words = bench.folder / "last_words"
    script = f"trap 'echo bye >/out/last_words; exit 0' TERM; echo ready; {FOREVER}"
    if not bench.in_containers:
        script = script.replace("/out/last_words", str(last_words))
    unit = bench.unit(script, mounts=(Mount(str(bench.folder), "/out", read_only=False),))

    async def scenario(transport: Transport) -> None:
        await bench.runtime.start(transport, unit)
        await wait_for_output(bench, transport, unit.name)
        await bench.runtime.remove_all(transport, bench.run, grace_s=20)

    bench.use(scenario)
    assert last_words.read_text() == "bye\n"


def test_two_may_clean_up_at_the_same_time(bench: Bench) -> None:
    async def scenario(transport: Transport) -> None:
        for name in "abc":
            await bench.runtime.start(transport, bench.unit(FOREVER, name=name))
        await asyncio.gather(*(bench.runtime.remove_all(transport, bench.run) for _ in range(3)))
        assert await bench.runtime.list_units(transport, bench.run) == ()

    bench.use(scenario)


def test_waiting_survives_a_lost_connection(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_sshd()
    server = Sshd(tmp_path / "sshd", variables=f"PATH={os.environ['PATH']}")
    server.start()
    live_as(server, monkeypatch)
    go = bench.folder / "go"
    seen = "/out/go" if bench.in_containers else str(go)
    mounts = (Mount(str(bench.folder), "/out"),)
    unit = bench.unit(f"until [ -e {seen} ]; do sleep 0.1; done; exit 11", mounts=mounts)

    async def scenario() -> int:
        cluster = ClusterSettings(hosts=("127.0.0.1",), ssh_port=server.port)
        transport = SshTransport("127.0.0.1", cluster)
        await bench.runtime.start(transport, unit)
        waiting = asyncio.ensure_future(bench.runtime.wait(transport, unit.name))
        await asyncio.sleep(0.5)
        server.drop_connections()
        with pytest.raises(TransportError, match="contact was lost"):
            await waiting
        again = asyncio.ensure_future(bench.runtime.wait(transport, unit.name))
        await asyncio.sleep(0.5)
        go.touch()
        code = await again
        await transport.close()
        return code

    try:
        assert asyncio.run(asyncio.wait_for(scenario(), 240)) == 11
    finally:
        server.stop()


def test_version(bench: Bench) -> None:
    version = bench.use(bench.runtime.version)
    assert any(character.isdigit() for character in version)


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"container_engine": "/no/such/engine"}, 'RUNTIME = "process"'),
        ({"runtime": "process", "process_python": "no-such-python"}, "PROCESS_PYTHON"),
    ],
)
def test_an_engine_that_is_not_installed(tmp_path: Path, changes: dict[str, str], remedy: str) -> None:
    runtime = open_runtime(settings(tmp_path, **changes))
    bench = Bench(runtime, "none", tmp_path)
    with pytest.raises(CommandError) as caught:
        bench.use(runtime.version)
    assert remedy in caught.value.remedy
    assert "install" in caught.value.remedy


@pytest.mark.parametrize("module", ["json.py", "utils/process_unit.py", "pathlib.py"])
def test_no_module_of_the_folder_that_it_is_called_in_runs(
    module: str, processes: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who calls run.py in /tmp as root must not run what somebody has put there."""
    planted = tmp_path / "here" / module
    planted.parent.mkdir(parents=True)
    planted.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "here"))

    async def scenario(transport: Transport) -> tuple[str, ...]:
        await processes.runtime.version(transport)
        unit = processes.unit("exit 3")
        await processes.runtime.start(transport, unit)
        assert await processes.runtime.wait(transport, unit.name) == 3
        await processes.runtime.list_units(transport)
        return await processes.runtime.remove_all(transport, processes.run)

    assert processes.use(scenario) == (f"{processes.run}-unit",)
    assert not (tmp_path / "ran").exists()


def move_away(work: Path) -> None:
    work.rename(work.with_name("site"))


def put_a_link(work: Path) -> None:
    move_away(work)
    work.symlink_to("site")


def give_the_way_away(work: Path) -> None:
    os.chown(work.parent, NOBODY, NOBODY)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (move_away, "is not there any more"),
        (put_a_link, "is a symbolic link of root, and not a folder of root"),
        (give_the_way_away, "belongs to nobody"),
    ],
)
def test_nothing_is_started_where_another_user_can_make_the_work_folder(
    bench: Bench, change: Callable[[Path], None], why: str
) -> None:
    """The tree that a unit is started from, or sees, lies in it, and it may have gone since it was compared."""
    work = Path(bench.runtime._work)  # type: ignore[attr-defined]
    unit = bench.unit("exit 0", mounts=(Mount(str(work), "/code"),))
    change(work)

    async def scenario(transport: Transport) -> None:
        with pytest.raises(FlagPerfError, match=why):
            await bench.runtime.start(transport, unit)
        assert await bench.runtime.list_units(transport, bench.run) == ()

    bench.use(scenario)


def test_a_unit_leaves_no_bytecode_beside_its_code(processes: Bench, tmp_path: Path) -> None:
    """It would be run in the place of the code that was deployed."""
    (tmp_path / "module.py").write_text("")
    unit = processes.unit(f"cd {tmp_path}; {sys.executable} -c 'import module'")
    assert processes.end_of(unit)[0] == 0
    assert not (tmp_path / "__pycache__").exists()


def test_pytorch_takes_compiled_code_from_the_units_own_folder(processes: Bench) -> None:
    """And not from /tmp, where another user may have left some under the name that it looks for."""
    asking = "from torch._inductor.runtime.cache_dir_utils import cache_dir; print(cache_dir())"
    unit = processes.unit(f"{sys.executable} -c '{asking}'")
    assert processes.end_of(unit) == (0, f"{processes.runtime.scratch(unit.name)}/compiled")


def test_what_a_unit_prints_is_read_in_bounds(processes: Bench) -> None:
    code, output = processes.end_of(processes.unit("head -c 20000000 /dev/zero | tr '\\0' x"))
    assert (code, set(output)) == (0, {"x"}) and len(output) <= 2**16


def test_a_host_that_warns_of_its_units_without_an_end_is_heard_in_bounds(
    tmp_path: Path,
) -> None:
    lying = tmp_path / "lying"
    lying.write_text("#!/bin/sh\nyes 'no unit of ours' | head -n 100000 >&2\n")
    lying.chmod(0o755)
    (tmp_path / WORK_FOLDER).mkdir(mode=0o700)
    runtime = open_runtime(settings(tmp_path, runtime="process", process_python=str(lying)))
    said = io.StringIO()
    LOGGER.add(said, level="WARNING", format="{message}")

    assert asyncio.run(runtime.list_units(LocalTransport("node1"))) == ()
    assert said.getvalue() == "node1: no unit of ours\n" * process.MOST_WARNINGS


@pytest.mark.parametrize("kind", ["docker", "process"])
def test_commands_that_hang_are_ended(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the one that waits for a unit: an engine that does not answer must not hold up the rounds to come."""
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 600\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(base, "LIMIT_S", 0.2)
    monkeypatch.setattr(base, "_HANGING", set())
    (tmp_path / WORK_FOLDER).mkdir(mode=0o700)
    changes = {"runtime": kind, "container_engine": str(hanging), "process_python": str(hanging)}
    bench = Bench(open_runtime(settings(tmp_path, **changes)), "r", tmp_path)
    runtime, transport, unit = bench.runtime, LocalTransport(), bench.unit("true")
    commands = {
        "start": lambda: runtime.start(transport, unit),
        "stop": lambda: runtime.stop(transport, unit.name, 0),
        "remove_all": lambda: runtime.remove_all(transport, "r"),
        "list_units": lambda: runtime.list_units(transport),
        "version": lambda: runtime.version(transport),
    }
    for name, command in commands.items():
        with pytest.raises(CommandTimeoutError, match=r"not done after 0\.2 s") as caught:
            asyncio.run(asyncio.wait_for(command(), 20))
        assert str(hanging) in caught.value.remedy and caught.value.where == transport.host, name
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(runtime.wait(transport, unit.name), 1))


def test_a_clean_up_has_one_limit_for_all_of_its_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command ends in time, but the unit never goes; the next clean-up of the host is not waited for as long."""
    engine, hanging = tmp_path / "engine", set[str]()
    engine.write_text(f'#!/bin/sh\nif [ "$1" = ps ]; then echo {"ab" * 32}; fi\n')
    engine.chmod(0o755)
    monkeypatch.setattr(base, "CLEAN_UP_S", 0.3)
    monkeypatch.setattr(base, "AGAIN_S", 0.1)
    monkeypatch.setattr(base, "_HANGING", hanging)
    runtime, transport = open_runtime(settings(tmp_path, container_engine=str(engine))), LocalTransport()
    for limit in ("0.3", "0.1"):
        with pytest.raises(CommandTimeoutError) as caught:
            asyncio.run(runtime.remove_all(transport, "r"))
        assert caught.value.message.endswith(f"; a clean-up of the host has {limit} s in all")
        assert str(engine) in caught.value.remedy and hanging == {transport.host}
    monkeypatch.setattr(base, "AGAIN_S", 60.0)
    engine.write_text("#!/bin/sh\n")
    assert asyncio.run(runtime.remove_all(transport, "r")) == () and not hanging
