"""`precision = "auto"`: the fastest that every rank's processor computes natively, settled when the ranks have met."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.driver.process_group import ProcessGroup
from utils.parameters import AUTO, Configuration, TrainingSettings, precisions_of
from utils.processor import CPUINFO, parse_cpuinfo

FAST, PLAIN = "bf16", "fp32"


@dataclass(frozen=True)
class Verdict:
    """What one rank's processor says of FAST: the flags that make it native, or why it is not."""

    flags: tuple[str, ...]
    reason: str = ""


def settled(config: Configuration, framework: str, group: ProcessGroup) -> Configuration:
    """`config` with a precision in the place of AUTO, the same on every rank, and why it is that one.

    Every rank calls this. Another precision is left as it is.
    """
    settings = config.settings
    if not isinstance(settings, TrainingSettings) or settings.precision != AUTO:
        return config
    if FAST in precisions_of(framework, "cpu"):
        precision, reason = choice(group.gather(verdict_of(Path(CPUINFO).read_text(encoding="utf-8"))))
    else:
        precision, reason = PLAIN, f"{framework} computes in nothing else on a CPU"
    return replace(config, settings=replace(settings, precision=precision), precision_reason=reason)


def verdict_of(cpuinfo: str) -> Verdict:
    """The verdict of the rank on whose host `/proc/cpuinfo` reads so."""
    processor = parse_cpuinfo(cpuinfo)
    flags = processor.native(FAST)
    return Verdict(flags, "" if flags else f"on {socket.gethostname()} {processor.lacks(FAST)}")


def choice(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """The precision for all ranks, of what each says by its number, and the reason."""
    without = next(((rank, verdict) for rank, verdict in enumerate(verdicts) if not verdict.flags), None)
    if without is not None:
        rank, verdict = without
        return PLAIN, f"{FAST} would be emulated, which is slower: rank {rank}, {verdict.reason}"
    common = set.intersection(*(set(verdict.flags) for verdict in verdicts))
    flags = sorted(common) or sorted({flag for verdict in verdicts for flag in verdict.flags})
    return FAST, f"every rank's processor computes it natively ({', '.join(flags)})"
