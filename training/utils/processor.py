"""What a host's processors compute natively, as `/proc/cpuinfo` tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CPUINFO = "/proc/cpuinfo"
FP32 = "fp32"  # of every processor
# The line of the flags (x86-64's and Arm's) -> precision -> the flags of which each brings products in it. Without
# one oneDNN converts to fp32 and back: slower than fp32 itself.
_NATIVE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "flags": {"bf16": ("amx_bf16", "avx512_bf16"), "fp16": ("amx_fp16", "avx512_fp16")},
    "Features": {"bf16": ("bf16",), "fp16": ("asimdhp",)},
}


@dataclass(frozen=True)
class Processor:
    """A host's processors; `flags` are those that all of them have, `kind` is the name of their line."""

    model: str
    kind: str
    flags: frozenset[str]

    def native(self, precision: str) -> tuple[str, ...]:
        """The flags by which `precision` is native; empty where it is emulated. fp32 needs none."""
        return tuple(flag for flag in self._wanted(precision) if flag in self.flags)

    def lacks(self, precision: str) -> str:
        """Why `precision` is not native: `AMD EPYC 7B13 has none of amx_bf16, avx512_bf16`."""
        wanted = ", ".join(self._wanted(precision))
        return f"{self.model} has {f'none of {wanted}' if ', ' in wanted else f'no {wanted or precision}'}"

    def _wanted(self, precision: str) -> tuple[str, ...]:
        return _NATIVE.get(self.kind, {}).get(precision, ())


def parse_cpuinfo(text: str) -> Processor:
    """The processors that `text`, the content of CPUINFO or its lines of flags and model, speaks of."""
    pairs = [
        (name.strip(), value.strip())
        for name, _, value in (line.partition(":") for line in text.splitlines())
    ]
    models = [value for name, value in pairs if name == "model name" and value]
    kind = next((name for name, _ in pairs if name in _NATIVE), "")
    flags = [frozenset(value.split()) for name, value in pairs if name == kind and kind]
    common = frozenset.intersection(*flags) if flags else frozenset()
    return Processor(models[0] if models else "the processor", kind, common)


def precision_note(value: Mapping[str, object]) -> str:
    """What `precision = "auto"` came to, of the values of INIT_END; empty where the precision was named."""
    reason = value.get("precision_reason")
    return f'precision = "auto" is {value.get("precision")} here: {reason}' if reason else ""
