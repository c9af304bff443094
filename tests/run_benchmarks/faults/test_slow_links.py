"""A link that is slow, or long: everything takes longer, and comes out as it should."""

from __future__ import annotations

from pathlib import Path

from tests.run_benchmarks.faults.delays import delayed
from tests.run_benchmarks.faults.pairs import Pair
from tests.run_benchmarks.faults.seen import Seen, fault

STEPS = 30


@fault("slow")
def test_a_link_of_one_megabit(pair: Pair, seen: Seen) -> None:
    pair.configure(STEPS, "pass  # code that no run has brought to the host before")
    pair.lab.slow(2, "1mbit")
    seen.made()
    ended = pair.bench.run()

    seen.run(ended.folder)
    pair.lab.unslow(2)
    assert "h2: deployed" in ended.output
    pair.assert_whole(ended, STEPS)


@fault("long")
def test_a_link_of_300_milliseconds(pair: Pair, home: Path, seen: Seen) -> None:
    pair.configure(STEPS)
    config = home / ".ssh" / "config"
    host = pair.lab.host(2)
    with delayed(host.address, 22, 0.15) as port:
        detour = f"Host h2\n  HostName 127.0.0.1\n  Port {port}\n  HostKeyAlias {host.address}\n"
        config.write_text(detour + config.read_text())
        seen.made()
        ended = pair.bench.run()
        seen.run(ended.folder)
    pair.assert_whole(ended, STEPS)
