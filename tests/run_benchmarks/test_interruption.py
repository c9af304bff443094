"""Requests to stop that lie in a run's folder: which of them a controller that takes the run over heeds."""

from __future__ import annotations

from pathlib import Path

from run_benchmarks.interruption import (
    REQUEST,
    asker_here,
    drop_request,
    request_in,
    request_stop,
    take_request,
)


def test_what_a_dead_controller_did_not_heed_is_dropped(tmp_path: Path) -> None:
    request_stop(tmp_path)
    drop_request(tmp_path, request_in(tmp_path))
    assert take_request(tmp_path) is None
    drop_request(tmp_path, None)


def test_what_is_asked_once_a_controller_has_the_run_is_heeded(tmp_path: Path) -> None:
    drop_request(tmp_path, request_in(tmp_path))
    request_stop(tmp_path)
    drop_request(tmp_path, None)
    assert take_request(tmp_path) is not None


def test_asking_again_makes_a_request_of_its_own(tmp_path: Path) -> None:
    request_stop(tmp_path)
    earlier = request_in(tmp_path)
    request_stop(tmp_path)
    drop_request(tmp_path, earlier)
    assert take_request(tmp_path) == asker_here()


def test_a_link_in_its_place_is_a_request_and_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("secret")
    (tmp_path / REQUEST).symlink_to(target)
    request_stop(tmp_path)
    assert take_request(tmp_path) == "somebody" and target.read_text() == "secret"
