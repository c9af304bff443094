"""The order in which workers take groups of tests."""

from __future__ import annotations

from tests.side_by_side import in_order


def test_groups_with_many_slow_tests_come_first_and_the_labs_alternate_with_others() -> None:
    slow_tests = {"quick": 0, "lab-few": 1, "some": 3, "lab-many": 5, "quick too": 0, "podman": 9}
    assert in_order(slow_tests) == ["lab-many", "podman", "lab-few", "some", "quick", "quick too"]
