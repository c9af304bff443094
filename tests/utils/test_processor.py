"""What `/proc/cpuinfo` tells of a host's processors; the texts were recorded, their other flags left out."""

from __future__ import annotations

import pytest

from utils.processor import parse_cpuinfo

SAPPHIRE_RAPIDS = """\
processor	: 0
model name	: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags		: fpu sse4_2 avx2 avx512f avx512_bf16 avx512_vnni amx_bf16 avx512_fp16 amx_tile amx_int8
processor	: 1
model name	: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags		: fpu sse4_2 avx2 avx512f avx512_bf16 avx512_vnni amx_bf16 avx512_fp16 amx_tile amx_int8
"""
CASCADE_LAKE = """\
processor	: 0
model name	: Intel(R) Xeon(R) CPU @ 2.80GHz
flags		: fpu sse4_2 avx2 avx512f avx512dq avx512bw avx512vl avx512_vnni
"""
ZEN_4 = """\
processor	: 0
model name	: AMD EPYC 9B14
flags		: fpu sse4_2 avx2 avx512f avx512_bf16 avx512_vnni
"""
GRAVITON_3 = """\
processor	: 0
BogoMIPS	: 2100.00
Features	: fp asimd fphp asimdhp cpuid sve i8mm bf16 dgh rng
CPU implementer	: 0x41
"""
GRAVITON_2 = """\
processor	: 0
Features	: fp asimd fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer	: 0x41
"""
POWER = "processor	: 0\ncpu		: POWER9, altivec supported\n"


@pytest.mark.parametrize(
    ("text", "bf16", "fp16"),
    [
        (SAPPHIRE_RAPIDS, ("amx_bf16", "avx512_bf16"), ("avx512_fp16",)),
        (CASCADE_LAKE, (), ()),
        (ZEN_4, ("avx512_bf16",), ()),
        (GRAVITON_3, ("bf16",), ("asimdhp",)),
        (GRAVITON_2, (), ("asimdhp",)),
        (SAPPHIRE_RAPIDS + CASCADE_LAKE, (), ()),  # of two sockets the lesser counts
        (POWER, (), ()),
        ("", (), ()),
    ],
)
def test_a_precision_is_native_where_every_processor_has_a_flag_of_it(
    text: str, bf16: tuple[str, ...], fp16: tuple[str, ...]
) -> None:
    processor = parse_cpuinfo(text)
    assert (processor.native("bf16"), processor.native("fp16")) == (bf16, fp16)


def test_what_is_missing_is_named_with_the_processor() -> None:
    lacks = parse_cpuinfo(CASCADE_LAKE).lacks("bf16")
    assert lacks == "Intel(R) Xeon(R) CPU @ 2.80GHz has none of amx_bf16, avx512_bf16"
    assert parse_cpuinfo(GRAVITON_2).lacks("bf16") == "the processor has no bf16"
    assert parse_cpuinfo(POWER).lacks("bf16") == "the processor has no bf16"
