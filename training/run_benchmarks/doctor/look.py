"""One look at a host: what its kernel and its files say, by one script and one round trip; nothing is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.stages.checks import QUICK_S, HostUse
from run_benchmarks.transports.base import Transport
from utils.numbers import whole
from utils.text_files import one_line, shortened

# Lines `name=value`. Interfaces are those that have a device behind them, or lead out of the host.
LOOK = r"""
export LC_ALL=C
say() { printf '%s=%s\n' "$1" "$(printf %s "$2" | tr '\n' ' ')"; }
say kernel "$(uname -sr)"
say machine "$(uname -m)"
say system "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release 2>/dev/null)"
say processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u | head -n 2)"
say processors "$(getconf _NPROCESSORS_ONLN)"
say governor "$(cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u)"
say load "$(cut -d' ' -f1 /proc/loadavg)"
sed -nE 's/^(MemTotal|MemAvailable|HugePages_Total|HugePages_Free|Hugepagesize): *([0-9]+).*/\1=\2/p' /proc/meminfo
say transparent_huge_pages "$(sed -n 's/.*\[\(.*\)\].*/\1/p' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null)"
say memlock "$(ulimit -S -l)"
say nofile "$(ulimit -S -n)"
say rdma "$(ls /sys/class/infiniband 2>/dev/null)"
say python3 "$(command -v python3)"
while read -r name destination _; do
  [ -e "/sys/class/net/$name/device" ] || [ "$destination" = 00000000 ] || continue
  say "mtu.$name" "$(cat "/sys/class/net/$name/mtu" 2>/dev/null)"
done </proc/net/route
exit 0
"""
MOST_LINES, LONGEST_VALUE = 200, 300
_DECIMAL = re.compile(r"\d{1,15}(\.\d{1,15})?", re.ASCII)
_LINE = re.compile(r"([A-Za-z0-9_.:@-]{1,60})=(.*)")


@dataclass(frozen=True)
class Look:
    """What the host said of itself: names of LOOK -> values, none longer than LONGEST_VALUE."""

    values: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The value; empty where the host does not say it."""
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """The whole number that the value is."""
        return whole(self.text(name))

    def decimal(self, name: str) -> float | None:
        """The number that the value is, with a point or without."""
        text = self.text(name)
        return float(text) if _DECIMAL.fullmatch(text) else None

    def below(self, prefix: str) -> dict[str, str]:
        """The values whose names begin so, by the rest of their names."""
        return {
            name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)
        }


@dataclass(frozen=True)
class Patient(HostUse):
    """A host that is examined. vendors: whose devices it should have. address: by which other hosts reach it."""

    look: Look = field(default_factory=Look)
    vendors: tuple[Vendor, ...] = ()
    address: str = ""


async def look_at(transport: Transport) -> Look:
    """Ask the host; what is no line of ours in its answer is left out."""
    done = await transport.run(["sh", "-c", LOOK], timeout=QUICK_S)
    return Look(parse(done.stdout))


def parse(printed: str) -> dict[str, str]:
    """The values by name: of the first lines, each bounded and without what would steer a terminal."""
    matches = (_LINE.fullmatch(line) for line in printed.splitlines()[:MOST_LINES])
    values = {match[1]: one_line(match[2]).strip().strip('"') for match in matches if match}
    return {name: shortened(value, LONGEST_VALUE) for name, value in values.items() if value}
