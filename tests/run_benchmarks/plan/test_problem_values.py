"""What a problem shows of the value that is wrong."""

from __future__ import annotations

import pytest

from run_benchmarks.plan.problems import Problems


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("hub_token", "Sup3rSecret", "***"),
        ("train_batch_size", "Sup3rSecret", "'Sup3rSecret'"),
        ("pad_token", 0, "0"),  # shorter than a secret is
        ("mask_token", None, ""),
    ],
)
def test_a_value_under_a_secrets_name_is_hidden_where_it_may_be_one(
    name: str, value: object, shown: str
) -> None:
    problems = Problems()
    problems.add("config.py", name, value, "has the wrong type", "write another")
    (problem,) = problems.all
    assert problem.value == shown
