"""Units without containers, as real process trees. The verbs are run as the process runtime runs them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.run_benchmarks.process_table import pids_with
from utils import process_unit

TRAINING = Path(__file__).resolve().parents[2] / "training"
PROGRAM = TRAINING / "utils" / "process_unit.py"
PYTHON = sys.executable
FOREVER = "while :; do sleep 0.1; done"
SRUN = """#!{python}
import signal, subprocess, sys  # FAKE: its tasks are its children, where Slurm's are those of a daemon
signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))
if sys.argv[1:]:
    sys.exit(subprocess.run(sys.argv[1:]).returncode)
print("ready", flush=True)
signal.pause()
"""


@dataclass(frozen=True)
class Place:
    """A folder for units, and a run.

    Units are found by their names on the whole machine, where other tests run too: a unit `a` here is `a-<run>`.
    """

    units: Path
    run: str

    def unit(self, name: str) -> str:
        """A unit's name on this machine."""
        return f"{name}-{self.run}"

    def folder(self, name: str) -> Path:
        """A unit's folder."""
        return self.units / self.unit(name)

    def start(
        self, name: str, *argv: str, env: Sequence[tuple[str, str]] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Start a unit of the run."""
        words = [".", f"flagperf.run={self.run}", "--", *argv]
        return self._python(str(PROGRAM), "start", str(self.folder(name)), *words, more=env)

    def verb(self, verb: str, name: str, *values: str) -> subprocess.CompletedProcess[str]:
        """Run `wait` or `stop`."""
        return self._python("-", verb, str(self.folder(name)), *values, stdin=PROGRAM.read_text())

    def listed(self) -> dict[str, bool]:
        """Name -> whether it runs, of the run's units."""
        done = self._python("-", "list", str(self.units), self.run, stdin=PROGRAM.read_text())
        units = map(json.loads, done.stdout.splitlines())
        return {unit["name"].removesuffix(f"-{self.run}"): unit["running"] for unit in units}

    def remove(self, grace_s: float = 0.0) -> list[str]:
        """Remove the run's units."""
        done = self.removing(grace_s)
        assert done.returncode == 0, done.stderr
        return [name.removesuffix(f"-{self.run}") for name in done.stdout.split()]

    def removing(self, grace_s: float) -> subprocess.CompletedProcess[str]:
        """The same, however it ends."""
        words = ("-", "remove", str(self.units), self.run, str(grace_s))
        return self._python(*words, stdin=PROGRAM.read_text())

    def waiting(self, name: str) -> subprocess.Popen[str]:
        """`wait`, in the background."""
        argv = [sys.executable, str(PROGRAM), "wait", str(self.folder(name))]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def _python(
        self, *words: str, stdin: str = "", more: Sequence[tuple[str, str]] = ()
    ) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PYTHONPATH": str(TRAINING), **dict(more)}
        argv = [sys.executable, *words]
        return subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "units", f"test-{uuid.uuid4().hex[:12]}")
    yield made
    made.remove()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def supervisor_of(place: Place, name: str) -> int:
    """Its command line names the unit's folder and the verb."""
    pids = [
        pid
        for pid in pids_with(str(place.folder(name)))
        if b"\0supervise\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert len(pids) == 1
    return pids[0]


def test_wait_prints_the_exit_code_and_the_folder_holds_the_rest(place: Place) -> None:
    assert place.start("a", "sh", "-c", "echo out; echo err >&2; exit 3").returncode == 0
    assert place.verb("wait", "a").stdout == "3\n"
    assert (place.folder("a") / "output.log").read_text() == "out\nerr\n"
    assert json.loads((place.folder("a") / "unit.json").read_text())["argv"][0] == "sh"
    assert place.listed() == {"a": False}


def test_start_returns_while_the_unit_runs(place: Place) -> None:
    assert place.start("a", "sh", "-c", FOREVER).returncode == 0
    assert place.listed() == {"a": True}


def test_a_command_that_is_not_there_leaves_nothing(place: Place) -> None:
    done = place.start("a", "/nowhere/nothing")
    assert done.returncode == 125
    assert done.stderr == "/nowhere/nothing: No such file or directory\n"
    assert not place.folder("a").exists()


def test_a_name_that_is_taken(place: Place) -> None:
    place.start("a", "true")
    done = place.start("a", "true")
    assert done.returncode == 125
    assert f"a unit named {place.unit('a')} exists: {place.folder('a')}" in done.stderr


def test_the_environment_is_the_units_own(place: Place) -> None:
    place.start(
        "a", "sh", "-c", 'echo "$WORDS"; echo "$FLAGPERF_UNIT $FLAGPERF_RUN"', env=[("WORDS", "a=b c")]
    )
    place.verb("wait", "a")
    assert (place.folder("a") / "output.log").read_text() == f"a=b c\n{place.unit('a')} {place.run}\n"


def test_what_a_unit_leaves_is_ended_though_it_claims_to_be_a_supervisor(place: Place) -> None:
    left = "for name in x $FLAGPERF_UNIT; do FLAGPERF_SUPERVISOR=$name setsid sleep $0 & done; sleep 0.1"
    duration = f"{1000 + time.time_ns() % 10**6}.5"
    place.start("a", "sh", "-c", left, duration)
    assert place.verb("wait", "a").stdout == "0\n"
    assert pids_with(f"sleep\0{duration}") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_fills_up_does_not_hide_the_exit_code(place: Place) -> None:
    place.units.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=256k", "units", str(place.units))
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        place.start("a", "sh", "-c", 'cat /dev/zero >"$0/fill"; exit 3', str(place.units))
        assert place.verb("wait", "a").stdout == "3\n"
        assert (place.units / "fill").stat().st_size > 0
        refused = place.start("b", "true")  # and nothing is left of what had no room to begin
        assert refused.returncode == 125 and "No space left on device" in refused.stderr
        assert not place.folder("b").exists()
    finally:
        place.remove()
        subprocess.run(("umount", str(place.units)), check=True)


def test_folders_that_lie_very_deep_are_removed(place: Place) -> None:
    """And the unit that comes after it."""
    deep = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
    for name, program in (("a", deep), ("b", "")):
        place.start(
            name, "sh", "-c", 'cd "$0" && exec "$@"', str(place.folder(name)), sys.executable, "-c", program
        )
        assert place.verb("wait", name).stdout == "0\n"
    assert sorted(place.remove()) == ["a", "b"]
    assert list(place.units.iterdir()) == []


@pytest.fixture
def ordinary(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The place, of a user who may not pass over permissions."""
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("there is no setpriv")
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        drop = "exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all"
        Path(sys.executable).write_text(f'#!/bin/sh\n{drop} {PYTHON} "$@"\n')
        Path(sys.executable).chmod(0o755)
    return place


def test_folders_that_a_unit_has_closed_are_removed_and_what_it_links_to_stays(
    ordinary: Place, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o500)
    closed = 'cd "$0" && mkdir -p x/y && touch x/y/f && ln -s "$1" x/link && chmod 0 x/y && chmod 0 x'
    ordinary.start("a", "sh", "-c", closed, str(ordinary.folder("a")), str(victim))
    assert ordinary.verb("wait", "a").stdout == "0\n"
    assert ordinary.remove() == ["a"]
    assert list(ordinary.units.iterdir()) == []
    assert victim.stat().st_mode & 0o777 == 0o500


def test_a_unit_that_has_closed_its_own_folder_is_listed_and_removed(ordinary: Place) -> None:
    closed = 'chmod 0 "$0" && exit 3'
    ordinary.start("a", "sh", "-c", closed, str(ordinary.folder("a")))
    assert ordinary.verb("wait", "a").stdout == "3\n"
    assert ordinary.listed() == {"a": False}
    assert ordinary.remove() == ["a"]
    assert list(ordinary.units.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_what_cannot_be_removed_is_named_and_listed_again(place: Place) -> None:
    for name in "ab":
        place.start(name, "sh", "-c", 'mkdir "$0/x" && touch "$0/beside"', str(place.folder(name)))
        assert place.verb("wait", name).stdout == "0\n"
    mounted = place.folder("a") / "x"
    subprocess.run(["mount", "--internal-only", "--types=tmpfs", "none", str(mounted)], check=True)
    try:
        (mounted / "f").touch()
        done = place.removing(0.0)
        assert done.returncode == 1 and f"see `ls -lR {place.units}`: {place.unit('a')}\n" in done.stderr
        assert place.listed() == {"a": False}
        assert (mounted / "f").is_file(), "what somebody has mounted there is not the unit's"
        assert sorted(each.name for each in place.folder("a").iterdir()) == ["unit.json", "x"]
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    assert place.remove() == ["a"] and place.listed() == {}


def test_a_killed_supervisor_is_never_a_success(place: Place) -> None:
    """Nobody saw the end, so it counts as killed, and what still runs is ended."""
    mark = f"rest-{place.run}"
    place.start("a", "sh", "-c", f"setsid sh -c '{FOREVER}' $0 & env -i sh -c '{FOREVER}' $0", mark)
    eventually(lambda: len(pids_with(mark)) >= 3)
    waiting = place.waiting("a")
    time.sleep(0.3)
    os.kill(supervisor_of(place, "a"), signal.SIGKILL)
    assert waiting.communicate(timeout=30)[0] == "137\n"
    eventually(lambda: pids_with(mark) == [])
    assert place.verb("wait", "a").stdout == "137\n"


@pytest.mark.parametrize("put", ["mkfifo", "mkdir", "ln -s /dev/zero"])
def test_what_a_unit_puts_in_place_of_its_exit_code_is_neither_waited_for_nor_believed(
    place: Place, put: str
) -> None:
    place.start("a", "sh", "-c", f'rm -f "$0" && {put} "$0"', str(place.folder("a") / "exit_code"))
    assert place.verb("wait", "a").stdout == "137\n"


def test_a_supervisor_does_not_mind_signals_that_a_login_shell_sends(place: Place) -> None:
    place.start("a", "sh", "-c", "sleep 0.7; exit 4")
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        os.kill(supervisor_of(place, "a"), number)
    assert place.verb("wait", "a").stdout == "4\n"


def test_signals_have_their_usual_effect_on_the_unit(place: Place) -> None:
    """The supervisor's deafness is not inherited."""
    place.start("a", "sh", "-c", "kill -HUP $$; sleep 100")
    assert place.verb("wait", "a").stdout == f"{128 + signal.SIGHUP}\n"


def test_stop_finds_the_whole_tree(place: Place) -> None:
    """A child with its own session, one without an environment, one whose parent has gone."""
    mark = f"tree-{place.run}"
    child = f"sh -c '{FOREVER}' $0"
    place.start(
        "a", "sh", "-c", f"setsid {child} & env -i {child} & (setsid env -i {child} &) ; {FOREVER}", mark
    )
    eventually(lambda: len(pids_with(mark)) >= 4)
    assert place.verb("stop", "a", "10").returncode == 0
    assert pids_with(mark) == []
    assert place.verb("wait", "a").stdout == "143\n"


@pytest.mark.parametrize(
    ("task", "code"), [((), "15"), (("sh", "-c", f"trap 'exit 4' TERM; echo ready; {FOREVER}"), "4")]
)
def test_tasks_of_srun_are_told_to_end_and_not_srun_which_would_kill_them(
    task: tuple[str, ...], code: str, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "srun").write_text(SRUN.format(python=sys.executable))
    (tmp_path / "srun").chmod(0o755)
    place.start("a", str(tmp_path / "srun"), *task)
    eventually(lambda: "ready" in (place.folder("a") / "output.log").read_text())
    place.verb("stop", "a", "60")
    assert place.verb("wait", "a").stdout == f"{code}\n"


@pytest.mark.parametrize("verb", ["stop", "remove"])
def test_a_unit_that_somebody_has_stopped_is_ended_with_its_supervisor(verb: str, place: Place) -> None:
    """A batch system suspends all of a job: five minutes were waited for a supervisor that could not answer."""
    mark = f"stopped-{place.run}"
    place.start("a", "sh", "-c", FOREVER, mark)
    for pid in {*pids_with(mark), supervisor_of(place, "a")}:
        os.kill(pid, signal.SIGSTOP)
    if verb == "stop":
        assert place.verb("stop", "a", "0.1").returncode == 0
        assert place.verb("wait", "a").stdout == "137\n"
    else:
        assert place.remove(0.1) == ["a"]
    assert pids_with(mark) == pids_with(str(place.folder("a"))) == []


def test_the_end_of_the_main_process_is_the_end_of_the_tree(place: Place) -> None:
    mark = f"left-{place.run}"
    place.start("a", "sh", "-c", f"setsid sh -c '{FOREVER}' $0 & exit 0", mark)
    assert place.verb("wait", "a").stdout == "0\n"
    eventually(lambda: pids_with(mark) == [])


def test_a_name_that_begins_alike_is_another_unit(place: Place) -> None:
    place.start("node1", "sh", "-c", FOREVER)
    place.start("node10", "sh", "-c", FOREVER)
    place.verb("stop", "node1", "5")
    assert place.listed() == {"node1": False, "node10": True}


def test_units_whose_folder_is_gone_are_still_found_and_ended(place: Place) -> None:
    mark = f"lost-{place.run}"
    place.start("a", "sh", "-c", f"sh -c '{FOREVER}' $0", mark)
    subprocess.run(["rm", "-r", str(place.folder("a"))], check=True)
    assert place.listed() == {"a": True}
    assert place.remove() == ["a"]
    assert pids_with(mark) == []


def test_units_of_another_host_in_a_shared_folder_are_left_alone(place: Place) -> None:
    """FLAGPERF_PATH_HOST may be on NFS."""
    place.start("a", "true")
    theirs = place.units / "theirs"
    theirs.mkdir()
    about = {"name": "theirs", "labels": {"flagperf.run": place.run}, "argv": [], "host": "another-host"}
    (theirs / "unit.json").write_text(json.dumps(about))
    assert place.listed() == {"a": False}
    assert place.remove() == ["a"]
    assert theirs.exists()


def test_waiting_ends_when_the_unit_is_removed(place: Place) -> None:
    place.start("a", "sh", "-c", FOREVER)
    waiting = place.waiting("a")
    time.sleep(0.3)
    place.remove()
    out = waiting.communicate(timeout=30)[0]
    # whichever comes first: the exit code is read, or the folder is gone
    assert (out, waiting.returncode) in (("137\n", 0), ("", 1))


def test_no_output_of_a_unit_holds_the_connection_open(place: Place) -> None:
    """`start` must let go of the pipes it was given, or ssh would wait for the unit's end."""
    env = {**os.environ, "PYTHONPATH": str(TRAINING)}
    words = [str(PROGRAM), "start", str(place.folder("a")), ".", f"flagperf.run={place.run}"]
    argv = [sys.executable, *words, "--", "sh", "-c", FOREVER]
    started = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.communicate(timeout=30) == (b"", b"")


# ---- what strangers put there


def plant(units: Path, name: str, record: object) -> Path:
    """A unit.json that we did not write."""
    folder = units / name
    folder.mkdir(parents=True)
    (folder / "unit.json").write_text(record if isinstance(record, str) else json.dumps(record))
    return folder


def test_a_record_names_no_path(place: Place, tmp_path: Path) -> None:
    """A unit is what its folder is named, whatever stands in it: an absolute path there was removed once."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    labels, host = {"flagperf.run": place.run}, os.uname().nodename
    names = (str(victim), "../../victim", "..", "")
    for number, name in enumerate(names):
        plant(place.units, f"u{number}", {"name": name, "labels": labels, "argv": [], "host": host})
    assert sorted(place.remove()) == ["u0", "u1", "u2", "u3"]
    assert victim.is_dir() and list(place.units.iterdir()) == []


RECORDS = {
    "empty": {},
    "a list": [],
    "nothing": "",
    "half": '{"name": "x", "labels": {"flagperf.run":',
    "no labels": {"host": os.uname().nodename, "labels": None},
    "labels of another kind": {"host": os.uname().nodename, "labels": ["flagperf.run"]},
    "deep": "[" * 100_000,
    "no text": "\udcff",
    "long": " " * 2**21,
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_broken_record_is_left_alone_and_named(kind: str, place: Place) -> None:
    place.start("a", "true")
    record = RECORDS[kind]
    folder = plant(place.units, "broken", "" if kind == "no text" else record)
    if kind == "no text":
        (folder / "unit.json").write_bytes(b"\xff{")
    done = place._python("-", "list", str(place.units), place.run, stdin=PROGRAM.read_text())
    assert done.returncode == 0 and f"left alone, no unit of ours: '{folder}'" in done.stderr
    assert list(place.listed()) == ["a"]
    assert place.remove() == ["a"]
    assert folder.exists()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    record=st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["host", "labels", "name", "flagperf.run"]) | st.text(), inner, max_size=4
            )
        ),
        max_leaves=8,
    ),
    name=st.text(
        st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=30
    ),
)
def test_whatever_stands_in_the_units_folder_ends_no_list(record: object, name: str) -> None:
    here = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()),
    ):
        units = Path(folder) / "units"
        units.mkdir()
        if name not in (".", ".."):
            plant(units, name, record)
        try:
            process_unit.list_units(units, "run20260102030405-abcdef")
        finally:
            os.chdir(here)
        for line in out.getvalue().splitlines():
            assert json.loads(line)["name"] == name


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
@pytest.mark.parametrize("depth", [0, 1], ids=["work folder", "units"])
def test_nothing_is_believed_that_lies_in_another_users_folder(depth: int, tmp_path: Path) -> None:
    """A machine may lose its files while a run goes on, and anybody makes folders of their names in /var/tmp."""
    place = Place(tmp_path / "work" / "units", f"test-{uuid.uuid4().hex[:12]}")
    place.folder("a").mkdir(parents=True)
    about = {"host": os.uname().nodename, "labels": {"flagperf.run": place.run}}
    (place.folder("a") / "unit.json").write_text(json.dumps(about))
    (place.folder("a") / "exit_code").write_text("0")
    assert place.listed() == {"a": False} and place.verb("wait", "a").stdout == "0\n"
    os.chown((place.units.parent, place.units)[depth], 65534, 65534)
    assert place.listed() == {} and place.remove() == []
    for verb in (("wait",), ("stop", "0")):
        done = place.verb(verb[0], "a", *verb[1:])
        assert done.returncode == 1 and "the unit was removed" in done.stderr
        assert f"left alone, for it is no folder of ours: '{place.units}'" in done.stderr
    assert (place.folder("a") / "unit.json").is_file()


def test_what_is_put_in_the_place_of_the_units_while_they_are_removed_stays(
    place: Place, tmp_path: Path
) -> None:
    held = tmp_path / "held"
    place.start("a", "sh", "-c", f"trap 'touch {held}' TERM; while [ ! -e {held}.go ]; do sleep 0.05; done")
    words = ("-", "remove", str(place.units), place.run, "60")
    removing = subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert removing.stdin
    removing.stdin.write(PROGRAM.read_text())
    removing.stdin.close()
    eventually(held.exists)
    ours, victims = tmp_path / "moved", tmp_path / "victims"
    (victims / place.unit("a")).mkdir(parents=True)
    place.units.rename(ours)
    place.units.symlink_to(victims)
    Path(f"{held}.go").touch()
    assert removing.wait(60) == 0
    assert list(victims.iterdir()) == [victims / place.unit("a")] and list(ours.iterdir()) == []
    place.units.unlink()


def test_links_among_the_units_are_left_alone(place: Place, tmp_path: Path) -> None:
    labels = {"flagperf.run": place.run}
    victim = plant(tmp_path, "victim", {"name": "l", "labels": labels, "host": os.uname().nodename})
    place.units.mkdir()
    (place.units / "l").symlink_to(victim)
    inner = place.units / "inner"
    inner.mkdir()
    (inner / "unit.json").symlink_to(victim / "unit.json")
    os.mkfifo(plant(place.units, "pipe", {}) / "pipe")
    (place.units / "pipe" / "unit.json").unlink()
    (place.units / "pipe" / "pipe").rename(place.units / "pipe" / "unit.json")
    assert place.listed() == {}
    assert place.remove() == []
    assert (victim / "unit.json").is_file() and (place.units / "l").is_symlink() and inner.is_dir()


def test_a_name_that_is_a_path_is_none(place: Place) -> None:
    for name in ("..", ".hidden", "a b", "a\nb", "-rf"):
        done = place._python(str(PROGRAM), "start", str(place.units / name), "--", "true")
        assert done.returncode == 125 and "not a name for a unit" in done.stderr, name


@contextmanager
def running(*argv: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards."""
    process = subprocess.Popen(argv, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_marks_that_are_no_names_are_no_units(place: Place, tmp_path: Path) -> None:
    """Any process can have any environment: one named a path, and the path was removed with the run."""
    victim = tmp_path / "victim"
    victim.mkdir()
    env = {**os.environ, "FLAGPERF_RUN": place.run, "FLAGPERF_UNIT": str(victim)}
    with running("sleep", "600", env=env) as process:
        assert place.listed() == {}
        assert place.remove() == []
        assert process.wait(10) == -signal.SIGKILL  # it says itself that it belongs to the run
    assert victim.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_marks_of_another_users_process_are_not_ours(place: Place) -> None:
    """One that claims to supervise a unit would be waited for without end."""
    place.start("a", "true")
    name = place.unit("a")
    env = {
        "FLAGPERF_RUN": place.run,
        "FLAGPERF_UNIT": "x",
        "FLAGPERF_SUPERVISOR": name,
        "PATH": os.environ["PATH"],
    }
    # the second runs as root, as what is started by sudo does
    for ids in (("--reuid=65534", "--clear-groups"), ("--ruid=65534",)):
        with running("setpriv", *ids, "sleep", "600", env=env) as process:
            name_of = Path(f"/proc/{process.pid}/comm")
            eventually(lambda name_of=name_of: name_of.read_text() == "sleep\n")  # type: ignore[misc]
            assert place.verb("wait", "a").stdout == "0\n"
            assert place.listed() == {"a": False}
