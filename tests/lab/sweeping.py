"""Takes away what a lab has made, and what is left of one whose process was killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.lab import cgroup, network
from tests.lab.commands import LabError
from tests.lab.lock import MachineLock, Record
from tests.lab.place import Place


def sweep(place: Place, record: Record | None) -> None:
    """Removes the lab at `place`, complete or not. Only for the holder of its lock."""
    if record is not None:
        place = replace(place, folder=Path(record.folder))
    for group in cgroup.existing(place.prefix):
        group.kill()
    network.remove(place, forwarded=record.forwarded if record else True)
    for group in cgroup.existing(place.prefix):
        group.remove()
    if place.folder.exists():
        shutil.rmtree(place.folder)


def sweep_abandoned(places: Iterable[Place]) -> None:
    """Removes each lab that nobody has any more, unless it was made to stay."""
    for place in places:
        lock = MachineLock(place.lock)
        try:
            lock.acquire(0)
        except LabError:
            continue
        try:
            record = lock.read()
            if record is not None and not record.kept:
                sweep(place, record)
                lock.write(None)
        finally:
            lock.release()
