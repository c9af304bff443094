"""Logs that no honest training writes: the result is whole, and a terminal is shown nothing that it would obey."""

from __future__ import annotations

import pytest

from tests.run_benchmarks.faults.pairs import CASE, Pair, made_in_rank
from tests.run_benchmarks.faults.seen import Seen, fault

STEPS = 30
HUGE = 10**9
ONCE = "if rank == 0 and step == 2:\n    fault()\n    "
FLOOD = (
    f"import sys; line = 'x' * 99 + chr(10); [sys.stdout.write(line * 10000) for _ in range({HUGE // 10**6})]"
)
BROKEN = r"import sys; sys.stdout.buffer.write(b'\xff\xfe\x80 \xc3( \xed\xa0\x80' + bytes(range(128, 256)) + b'\n')"
LONG = 'print(\'[PerfLog] {"event": "NOTE", "value": {"text": "\' + \'x\' * 10_000_000 + \'"}}\', flush=True)'
BOTH = "print(format_line(Event('NOTE', {'n': 1})) + format_line(Event('NOTE', {'n': 2})), flush=True)"
ESCAPES = r"""if rank == 0 and step == 20:
    fault()
    print("\x1b[2J\x1b[1;31m\x1b]0;another title\x07\x9b5n\rhidden", flush=True)
    raise SystemExit("\x1b[2Jthe rank\x1b]0;title\x07 breaks\u202e")
"""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(FLOOD, marks=fault("log-huge"), id="huge"),
        pytest.param(BROKEN, marks=fault("log-bytes"), id="bytes"),
        pytest.param(LONG, marks=fault("log-line"), id="line"),
        pytest.param(BOTH, marks=fault("log-both"), id="both"),
    ],
)
def test_a_log_is_strange_and_the_result_is_whole(code: str, pair: Pair, seen: Seen) -> None:
    pair.configure(STEPS, ONCE + code)
    ended = pair.bench.run()

    made_in_rank(seen, ended.folder)
    seen.run(ended.folder)
    assert ended.folder is not None
    result = pair.assert_in_order(ended)
    assert result["facts"]["num_trained_samples"] == 8 * STEPS
    (log,) = ended.folder.glob(f"{CASE}/round1/h1_noderank0/rank0.out.log")
    assert (log.stat().st_size > HUGE) == (code == FLOOD)


@fault("log-escapes")
def test_what_a_rank_says_to_terminals_reaches_none(pair: Pair, seen: Seen) -> None:
    pair.configure(STEPS, ESCAPES)
    ended = pair.bench.run()

    made_in_rank(seen, ended.folder)
    seen.run(ended.folder)
    assert ended.folder is not None
    failure = pair.assert_in_order(ended)["failure"]
    assert "the rank" in failure["evidence"]
    shown = ended.output + (ended.folder / "summary.md").read_text()
    assert not set(shown) & set("\x1b\x07\x9b\u202e")
