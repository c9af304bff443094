"""Sample this node until SIGTERM: processors, memory, traffic, temperatures, power, and the accelerators of a vendor.

    python3 -m utils.monitors --log-dir DIR --vendor-dir training/VENDOR [--interval 1.0] [--sources cpu,rapl=0.1]

It runs on every node, outside the training processes: as a process, or in a container of the task's
image without network, capabilities or the host's processes. As a container it needs, each read-only,

    /proc/stat and /proc/meminfo in /host/proc      CPU and memory: lxcfs and the like cover a container's own
    /sys/class and /sys/devices in /host/sys        the rest: engines hide parts of /sys, but not of a second mount
    /sys/fs/cgroup in /host/sys                     what the task's control group uses: a container sees its own
    the vendor's own options                        so that the vendor's library sees the devices

and writes `cpu_`, `mem_`, `pwr_`, `rapl_` and `<vendor>_monitor.log`, `monitor.log` (its own doings),
`telemetry.jsonl` (all that was sampled, for the figures) and `inventory.json` (what the node is made of) to DIR.
Exit code: 0 after SIGTERM or SIGINT, 2 for bad arguments or a DIR that cannot be written to. Processors need psutil
(requirements.txt beside this file); without it the rest is sampled.
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from utils.monitors.accelerators import monitor_file
from utils.monitors.files import open_log
from utils.monitors.inventory import InventoryTaker, Places
from utils.monitors.registry import LEAST_INTERVAL_S, SOURCES
from utils.monitors.schedule import run_monitors
from utils.monitors.source import Source
from utils.telemetry.lines import MONITOR_LOG

LOG_FORMAT = "%(asctime)s\t[%(levelname)s]\t[%(filename)s,%(lineno)d]%(message)s"
SUMMARY = (
    "Sample this node until SIGTERM: its processors, memory, traffic, power, and a vendor's accelerators."
)
SECOND_MOUNTS = Path("/host")
USAGE_ERROR = 2
# What a sample makes is given back by itself. To look for what is not, through all objects, whenever 700 more have been
# made than given back, as is Python's rule, would be a fifth of what a sample costs.
COLLECT_AFTER = 100_000

log = logging.getLogger("utils.monitors")


def main(argv: list[str]) -> int:
    """Run the monitors; returns the exit code."""
    args = _parse(argv)
    stop = threading.Event()
    _stop_on_signals(stop)
    gc.set_threshold(COLLECT_AFTER)
    try:
        _log_to(args.log_dir)
        inventory = InventoryTaker(Places(args.proc, args.sys, vendor_dir=args.vendor_dir), args.log_dir)
        inventory.finish(run_monitors(_sources(args), args.log_dir, stop, args.ticks))
    except OSError as error:
        print(f"utils.monitors: {args.log_dir} cannot be written to: {error.strerror}", file=sys.stderr)
        return USAGE_ERROR
    return 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m utils.monitors", description=SUMMARY)
    parser.add_argument("--log-dir", type=Path, required=True, help="folder of this node's logs")
    parser.add_argument("--vendor-dir", type=Path, help="folder of the vendor, e.g. training/nvidia")
    parser.add_argument("--interval", type=_seconds, default=1.0, help="seconds a sample (default: 1.0)")
    parser.add_argument(
        "--sources",
        type=_intervals,
        default=dict.fromkeys(SOURCES),
        help=f"which, with commas, and where it is another its interval (default: all: {','.join(SOURCES)})",
    )
    parser.add_argument("--ticks", type=int, help="stop after this many samples (default: at SIGTERM)")
    for name in ("proc", "sys"):
        place = _host_mount(name)
        parser.add_argument(f"--{name}", type=Path, default=place, help=f"the host's /{name} (here: {place})")
    args = parser.parse_args(argv)
    if args.vendor_dir is not None and not args.vendor_dir.is_dir():
        parser.error(f"--vendor-dir: no such folder: {args.vendor_dir}")
    if not args.log_dir.is_dir():
        parser.error(f"--log-dir: no such folder: {args.log_dir}")
    return args


def _host_mount(name: str) -> Path:
    """Where a second mount of the host's own is, there; else where every system has it."""
    second = SECOND_MOUNTS / name
    return second if second.is_dir() else Path("/", name)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text}")
    return value


def _intervals(text: str) -> dict[str, float | None]:
    """`cpu,rapl=0.1`: source -> its own interval in seconds, or None."""
    intervals: dict[str, float | None] = {}
    for word in filter(None, text.split(",")):
        name, separator, interval = word.partition("=")
        if name not in SOURCES:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(SOURCES)}")
        intervals[name] = _seconds(interval) if separator else None
    return intervals


def _sources(args: argparse.Namespace) -> list[tuple[Source, float]]:
    vendor_dir: Path | None = args.vendor_dir and args.vendor_dir.resolve()
    if vendor_dir and not monitor_file(vendor_dir).exists():
        log.info("%s: no accelerators to sample: %s has no monitor", vendor_dir.name, vendor_dir)
        vendor_dir = None
    places = Places(args.proc, args.sys, vendor_dir=vendor_dir, log_dir=args.log_dir)
    sources = (
        (SOURCES[name](places), interval or max(args.interval, LEAST_INTERVAL_S.get(name, 0.0)))
        for name, interval in args.sources.items()
    )
    return [(source, interval) for source, interval in sources if source]


def _stop_on_signals(stop: threading.Event) -> None:
    orders: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        """`timeout` sends SIGTERM twice: a second one within Event.set would wait for its lock for ever."""
        if not orders:
            orders.append(number)
            stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)


def _log_to(folder: Path) -> None:
    formatter = logging.Formatter(LOG_FORMAT)
    for stream in (open_log(folder / MONITOR_LOG), sys.stderr):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        log.addHandler(handler)
    log.setLevel(logging.INFO)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
