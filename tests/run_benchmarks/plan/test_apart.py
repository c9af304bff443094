"""Code in configuration files is executed apart: whatever it does, the tool goes on and names the file and the line."""

from __future__ import annotations

import builtins
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.plan import apart
from run_benchmarks.plan.config_file import read_config_file, read_leniently
from run_benchmarks.plan.printed import MOST_PRINTED
from run_benchmarks.plan.problems import Problems
from tests.run_benchmarks.plan.bad_rows import CONFIG
from tests.run_benchmarks.plan.tree import Tree
from utils.errors import Problem

ROOT = Path(__file__).resolve().parents[3]
FILES = (
    "config/cluster_conf.py",
    "config/test_conf.py",
    "training/run_benchmarks/config/machine_conf.py",
    "training/acme/vendor.py",
    "training/benchmarks/toy/pytorch/config/_base.py",
    "training/benchmarks/toy/pytorch/config/mutable_params.py",
    "training/acme/toy-pytorch/config/config_X1x1x2.py",
)
# Code may write to a pipe that it takes for its own; a child keeps that open.
HALF_AN_ANSWER = """
import os, signal, sys, time
signal.setitimer(signal.ITIMER_REAL, 0)
frame = sys._getframe()
while "sender" not in frame.f_locals:
    frame = frame.f_back
os.write(frame.f_locals["sender"].fileno(), bytes(2))
time.sleep(5)
"""
# And may end with it, as if it had answered.
AN_ANSWER = HALF_AN_ANSWER.replace("bytes(2)", "len({0}).to_bytes(8, 'big') + {0}").replace(
    "time.sleep(5)", "os._exit(0)"
)


@pytest.fixture(autouse=True)
def nothing_stays(own_fork: None) -> Any:
    threads = set(threading.enumerate())
    yield
    assert multiprocessing.active_children() == []
    assert set(threading.enumerate()) <= threads


def read(folder: Path, text: str) -> tuple[dict[str, Any] | None, list[Problem]]:
    """What the file `conf.py` with this text sets, and what is wrong with it."""
    problems = Problems()
    (folder / "conf.py").write_text(text, encoding="utf-8")
    file = read_config_file(folder / "conf.py", problems, "")
    return None if file is None else dict(file.values), problems.all


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_ends_the_tool_is_a_problem_of_that_line(tree: Tree, file: str) -> None:
    path = tree.config.parent / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.is_file() else ""
    path.write_text(f"import sys\nsys.exit(0)\n{text}")
    exit_code, problems = tree.problems()
    assert ("SystemExit: 0: sys.exit(0)", f"{path}:2") in [
        (problem.message, problem.where) for problem in problems
    ]
    assert exit_code == (CONFIG if "conf.py" in file else 4)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_does_not_end_is_a_problem_of_that_line(
    tree: Tree, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "LIMIT_S", 3.0)  # the other files must be done within it on any machine
    path = tree.config.parent / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("A = 1\nwhile A:\n    pass\n")
    _, problems = tree.problems()
    (problem,) = [each for each in problems if each.message == "was not done after 3 s"]
    assert problem.where in (f"{path}:2", f"{path}:3") and problem.remedy


@pytest.mark.parametrize("verb", ["run", "plan", "cleanup"])
def test_the_exit_code_tells_of_it(tmp_path: Path, verb: str) -> None:
    (tmp_path / "cluster_conf.py").write_text('HOSTS = ["localhost"]\n')
    (tmp_path / "test_conf.py").write_text("import os\nos._exit(0)\n")
    argv = [sys.executable, str(ROOT / "training/run_benchmarks/run.py"), verb, "--config", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == CONFIG
    assert "test_conf.py: ended the process that executed it, with exit code 0" in done.stderr
    assert "1 problem; nothing was done" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise type('E', (BaseException,), {'__str__': lambda self: 1 / 0})", "E, which cannot be shown"),
        ("import os; os.kill(os.getpid(), 9)", "ended the process that executed it, by signal 9"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("A = [0] * 10**15", "MemoryError"),
        ("A = input()", "EOFError: EOF when reading a line"),
        ("A = []\nA.append(A)", "RecursionError: "),
        ("A = []\nfor _ in range(60): A = [A]", "A nests deeper than 50 levels"),
        ("A = 10**400", "A holds a number of more than 1000 bits"),
        ("A = ['\\ud800']", "A holds half a character (a surrogate)"),
        ("A = 'x' * 2**26", "sets more than 67108864 bytes"),
        (AN_ANSWER.format("b'(\\2\\0\\0\\0T(\\1\\0\\0\\0N'"), "wrote to a descriptor that is not its own"),
    ],
)
def test_what_code_may_do_is_a_problem(tmp_path: Path, text: str, message: str) -> None:
    values, (problem,) = read(tmp_path, text)
    assert values is None and problem.message.startswith(message), problem
    assert problem.where.startswith(str(tmp_path / "conf.py")) and problem.remedy


@pytest.mark.parametrize(
    "loop",
    [
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "import time; time.sleep(1e6)",
        "import threading; threading.Lock().acquire(); threading.Event().wait()",
        "A = 9 ** 9 ** 9 ** 9",
        "import itertools; sum(itertools.repeat(0))",
        "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
        HALF_AN_ANSWER,
        f"import os\nif os.fork(): os._exit(0)\n{HALF_AN_ANSWER}",
    ],
)
def test_nothing_goes_on_for_ever(tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "LIMIT_S", 0.3)
    monkeypatch.setattr(apart, "GRACE_S", 0.3)
    _, (problem,) = read(tmp_path, loop)
    assert problem.message == "was not done after 0.3 s"
    assert problem.where.startswith(str(tmp_path / "conf.py"))


def test_no_file_outlives_a_controller_that_is_killed(tmp_path: Path) -> None:
    """Though it has blocked every signal that can be."""
    pid = tmp_path / "pid"
    text = "import os, signal, time\nsignal.pthread_sigmask(signal.SIG_SETMASK, range(1, 65))\n"
    text += f"open({str(pid)!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(60)\n"
    controller = multiprocessing.get_context("fork").Process(target=read, args=(tmp_path, text))
    controller.start()
    eventually(lambda: pid.is_file() and pid.read_text().endswith("\n"))
    controller.kill()
    controller.join()
    eventually(lambda: not is_alive(int(pid.read_text())))


@pytest.mark.parametrize("end", ["A = 1", "raise KeyError", "os._exit(0)", "while True: pass"])
def test_what_a_file_has_started_ends_with_it(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "LIMIT_S", 3.0)
    pid = tmp_path / "pid"
    read(tmp_path, f"{starting(pid)}{end}\n")
    eventually(lambda: not is_alive(int(pid.read_text())))


def test_what_leaves_the_files_group_and_could_still_print_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    text = starting(pid).replace("'60']", "'60'], start_new_session=True")
    try:
        assert read(tmp_path, f"{text}A = 1\n") == ({"A": 1}, [])
        assert is_alive(int(pid.read_text()))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_ctrl_c_at_the_terminal_ends_what_a_file_has_started(tmp_path: Path) -> None:
    """The terminal asks the tool's group alone."""
    pid = tmp_path / "pid"
    (tmp_path / "cluster_conf.py").write_text('HOSTS = ["localhost"]\n')
    (tmp_path / "test_conf.py").write_text(f"{starting(pid)}while True: pass\n")
    argv = [sys.executable, str(ROOT / "training/run_benchmarks/run.py"), "plan", "--config", str(tmp_path)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True) as tool:
        eventually(lambda: pid.is_file() and pid.read_text().endswith("\n"))
        os.killpg(tool.pid, signal.SIGINT)
        assert tool.wait() == ExitCode.INTERRUPTED
        eventually(lambda: not is_alive(int(pid.read_text())))
        assert tool.communicate()[1] == "interrupted by SIGINT\n"


def starting(pid: Path) -> str:
    """Code that starts a process which would live for a minute, and writes its number."""
    text = "import os, subprocess\nstarted = subprocess.Popen(['sleep', '60'])\n"
    return f"{text}open({str(pid)!r}, 'w').write(f'{{started.pid}}\\n')\n"


def is_alive(pid: int) -> bool:
    """Whether it runs: nobody may have reaped what has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_a_file_that_did_not_end_is_executed_once_for_all_that_load_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "LIMIT_S", 5.0)  # on a busy machine what leads there takes a second
    common, count = tmp_path / "config_common.py", tmp_path / "count"
    helper = "def endless():\n    while True: pass\n"
    (tmp_path / "helper.py").write_text(helper)
    text = f"import helper\nopen({str(count)!r}, 'a').write('x')\n"
    common.write_text(f"{text}helper.endless()\n")
    for _ in range(3):
        _, (problem,) = read(tmp_path, "from config_common import *\n")
        assert problem.message == "was not done after 5 s" and problem.where == f"{common}:3"
    assert count.read_text() == "x"
    assert read(tmp_path, "import helper\nA = 1\n") == ({"A": 1}, [])  # what was called was not to blame
    common.write_text(f"{text}A = 2\n")
    assert read(tmp_path, "from config_common import *\n") == ({"A": 2}, [])


def test_what_code_changes_stays_its_own(tmp_path: Path) -> None:
    before = (builtins.open, list(sys.path), Path.cwd())
    text = (
        "import builtins, os, sys, threading, time\nbuiltins.open = None\nos.chdir('/')\nsys.path.clear()\n"
        "os.environ['FLAGPERF_TEST'] = '1'\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\nA = 1\n"
    )
    assert read(tmp_path, text) == ({"A": 1}, [])
    assert before == (builtins.open, list(sys.path), Path.cwd())
    assert "FLAGPERF_TEST" not in __import__("os").environ


def test_what_code_prints_is_no_part_of_the_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "import os\nprint('from Python')\nos.system('echo from a shell')\nA = 1\n"
    assert read(tmp_path, text) == ({"A": 1}, [])
    shown = capfd.readouterr()
    assert shown.out == "" and "from Python" in shown.err and "from a shell" in shown.err


def test_what_code_prints_steers_no_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = r"print('a \x1b[2J\x1b]0;title\x07 b é\ttab\r\nnext\u202e')"
    read(tmp_path, f"{text}\n")
    assert capfd.readouterr().err == "a \ufffd[2J\ufffd]0;title\ufffd b é\ttab\nnext\ufffd\n"


@pytest.mark.parametrize(
    ("printing", "messages"),
    [
        ("while True: print('x' * 1000)", ["BrokenPipeError: [Errno 32] Broken pipe"]),
        ("while True:\n    with suppress(OSError): print('x' * 1000)", ["was not done after 3 s"]),
        ("os.system('head -c 4000000 /dev/zero')", []),
    ],
)
def test_what_code_prints_fills_no_log(
    tmp_path: Path,
    printing: str,
    messages: list[str],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a file nor what reads a pipe behind the tool."""
    monkeypatch.setattr(apart, "LIMIT_S", 3.0)
    _, problems = read(tmp_path, f"import os\nfrom contextlib import suppress\nprint('first')\n{printing}\n")
    assert [problem.message.partition(": while")[0] for problem in problems] == messages
    shown, cut, _ = capfd.readouterr().err.partition(f"\n{tmp_path / 'conf.py'}: prints more than ")
    assert shown.startswith("first\n") and len(shown) == MOST_PRINTED and cut


def test_subclasses_of_plain_types_come_as_these_types(tmp_path: Path) -> None:
    text = (
        "import enum, collections\nclass E(str, enum.Enum):\n    A = 'a'\nclass N(enum.IntEnum):\n    ONE = 1\n"
        "TEXT, NUMBER = E.A, N.ONE\nD = collections.OrderedDict(a=True)\nP = collections.namedtuple('P', 'x')(2.5)\n"
    )
    values, problems = read(tmp_path, text)
    assert values == {"TEXT": "a", "NUMBER": 1, "D": {"a": True}, "P": (2.5,)} and not problems
    assert [type(value) for value in values.values()] == [str, int, dict, tuple]


_NUMBERS = st.integers(-(2**900), 2**900) | st.floats(allow_nan=False, allow_infinity=False)
_LEAVES = st.none() | st.booleans() | _NUMBERS | st.text(st.characters(exclude_categories=["Cs"]))
_KEYS = st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-5, 5)
_DATA = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(_DATA)
@settings(
    derandomize=True,
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_plain_data_comes_back_as_it_was_set(tmp_path: Path, data: Any) -> None:
    values, problems = read(tmp_path, f"A = {data!r}\n")
    assert not problems
    assert repr(values) == repr({"A": data})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A = 1\nB = C\n", {"A": 1}),
        ("A = 1\nimport sys; sys.exit(0)\n", {"A": 1}),
        ("A = = 1\n", {}),
        ("import os; os._exit(0)\n", {}),
    ],
)
def test_a_file_that_need_not_be_valid_gives_what_it_can(
    tmp_path: Path, text: str, values: dict[str, Any]
) -> None:
    path = tmp_path / "conf.py"
    path.write_text(text)
    assert {name: value for name, value in read_leniently(path).items() if name == "A"} == values
    assert read_leniently(tmp_path / "none.py") == {}


def test_a_signal_at_the_fork_is_not_lost(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom run_benchmarks.plan.apart import apart\n"
        "def stop(number, _): raise KeyboardInterrupt(number)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGTERM))\n"
        "try: apart(lambda: 1, Path('x.py'))\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    training = Path(__file__).resolve().parents[3] / "training"
    env = {**os.environ, "PYTHONPATH": str(training)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_what_is_executed_hears_signals_again(tmp_path: Path) -> None:
    masked = apart.apart(lambda: len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), tmp_path / "x.py")
    assert masked == len(signal.pthread_sigmask(signal.SIG_BLOCK, [])) == 0
