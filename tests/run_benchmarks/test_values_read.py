"""What a stranger's JSON holds is measured before it is decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks import reading
from run_benchmarks.reading import values_in

TEXTS = st.text(st.sampled_from('",[{\\x\n\u20ac'), max_size=9)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def counted(value: Any) -> int:
    """The brackets and commas between its values."""
    inner = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else max(1, len(inner)) + sum(map(counted, inner))


@pytest.mark.parametrize("piece", [1, 7, 2**20])
@given(value=VALUES)
@settings(derandomize=True, deadline=None)
def test_only_what_stands_between_texts_is_a_value(piece: int, value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_PIECE", piece)
        assert values_in(json.dumps(value)) == counted(value)
