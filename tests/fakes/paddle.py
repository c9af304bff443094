"""FAKES of what Paddle has on other machines: its store of several ranks, a GPU, and a kernel of that."""

from __future__ import annotations

from dataclasses import dataclass, field

import paddle


class ArrivingStore:
    """FAKE of Paddle's TCPStore, at its border: counts, and lets the other ranks arrive after some looks."""

    def __init__(self, others: int, after_looks: int) -> None:
        self.count, self.others, self.looks_left = 0, others, after_looks

    def add(self, key: str, amount: int) -> int:
        self.count += amount
        self.looks_left -= 1
        if self.looks_left == 0:
            self.count += self.others
        return self.count


@dataclass
class Mark:
    done: bool = False

    def query(self) -> bool:
        return self.done


@dataclass
class SlowDevice:
    """FAKE of a GPU, at its border: copies end when the test says so."""

    name: str = "cpu"
    is_cpu: bool = False
    marks: list[Mark] = field(default_factory=list)

    def mark(self) -> Mark:
        self.marks.append(Mark())
        return self.marks[-1]


def plain_varlen_attention(
    query: paddle.Tensor,
    key: paddle.Tensor,
    value: paddle.Tensor,
    cu_seqlens_q: paddle.Tensor,
    cu_seqlens_k: paddle.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float = 0.0,
) -> tuple[paddle.Tensor, None]:
    """FAKE of the GPU kernel `flash_attn_unpadded`, which a CPU has not: what its documentation says it computes."""
    assert (cu_seqlens_q.dtype, cu_seqlens_k.dtype) == (paddle.int32, paddle.int32)
    assert dropout == 0.0
    mixed, ends_q, ends_k = [], cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    for sample in range(len(ends_q) - 1):
        asked = slice(ends_q[sample], ends_q[sample + 1])
        seen = slice(ends_k[sample], ends_k[sample + 1])
        assert asked.stop - asked.start <= max_seqlen_q and seen.stop - seen.start <= max_seqlen_k
        q, k, v = (part.transpose([1, 0, 2]) for part in (query[asked], key[seen], value[seen]))
        weights = paddle.nn.functional.softmax(scale * q @ k.transpose([0, 2, 1]))
        mixed.append((weights @ v).transpose([1, 0, 2]))
    return paddle.concat(mixed), None
