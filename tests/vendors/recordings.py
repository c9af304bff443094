"""What vendors' tools printed, which the conformance kit replays: for tests that change it."""

from __future__ import annotations

from pathlib import Path

TRAINING = Path(__file__).resolve().parents[2] / "training"


def recording(vendor: str, name: str) -> str:
    """What the tool printed."""
    return (TRAINING / vendor / "recordings" / f"{name}.txt").read_text("utf-8")
