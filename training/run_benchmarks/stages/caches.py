"""The page cache of a host: dropped before every round where CLEAR_CACHES asks for it."""

from __future__ import annotations

from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import QUICK_S, HostUse
from utils.errors import FlagPerfError

# vm.drop_caches needs root; FlagPerf's users give the ssh user a passwordless sudo for it.
CAN_DROP_CACHES = "[ -w /proc/sys/vm/drop_caches ] || sudo -n -l sysctl -q vm.drop_caches=3"
DROP_CACHES = (
    "sync; if [ -w /proc/sys/vm/drop_caches ]; then echo 3 >/proc/sys/vm/drop_caches; "
    "else sudo -n sysctl -q vm.drop_caches=3; fi"
)


async def caches(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """Where CLEAR_CACHES asks for it, the caches can be dropped."""
    if not plan.run.clear_caches:
        return None
    if not (await use.transport.run(["sh", "-c", CAN_DROP_CACHES], timeout=QUICK_S)).ok:
        raise FlagPerfError(
            "this user may not drop the page cache",
            remedy="log in as root, allow `sudo -n sysctl -q vm.drop_caches=3` to the ssh user, "
            "or set CLEAR_CACHES = False",
        )
    return "dropped before every round"
