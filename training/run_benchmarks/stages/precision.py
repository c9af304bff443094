"""Whether a host's processors compute natively in the precision that its cases want of them."""

from __future__ import annotations

from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import QUICK_S, DoubtError, HostUse
from utils.parameters import AUTO, KIND, TrainingSettings, precisions_of
from utils.processor import CPUINFO, FP32, Processor, parse_cpuinfo

# Each line once: a host with many processors says the same of all of them.
READ_PROCESSORS = f"grep -E '^(model name|flags|Features)' {CPUINFO} | sort -u"


async def precision(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """No case on the host's own processors asks for a precision that these only emulate."""
    wanted = {
        (case.settings.framework_name, str(case.parameters.get("precision"))): case
        for case in use.cases
        if _trains_on_processors(case)
    }
    if all(name == FP32 for _, name in wanted):
        return None
    read = await use.transport.run(["sh", "-c", READ_PROCESSORS], timeout=QUICK_S)
    if not read.stdout.strip():
        raise DoubtError(read.last_lines(1) or f"{CPUINFO} says nothing", remedy="look into it yourself")
    processor = parse_cpuinfo(read.stdout)
    return ", ".join(dict.fromkeys(_judged(name, case, processor) for (_, name), case in wanted.items()))


def _trains_on_processors(case: CasePlan) -> bool:
    return case.vendor.device_type == "cpu" and case.parameters.get(KIND) == TrainingSettings.kind


def _judged(name: str, case: CasePlan, processor: Processor) -> str:
    if name == FP32:
        return FP32
    flags = processor.native("bf16" if name == AUTO else name)
    if name == AUTO and (not flags or "bf16" not in precisions_of(case.settings.framework_name, "cpu")):
        return f"{AUTO}: {FP32}"
    if flags:
        return f"{name}: {', '.join(flags)}"
    raise DoubtError(
        f"{case.settings.name} asks for {name}, which is emulated here: {processor.lacks(name)}",
        remedy=f'set precision = "{AUTO}" or "{FP32}" in {case.files.config_dir}/{case.files.config_file}, '
        "or in what it imports: both are faster on this host",
    )
