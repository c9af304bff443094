"""Several real hosts on one machine, each with its own address, sshd and container engine."""

from tests.lab.commands import LabError
from tests.lab.lab import Lab

__all__ = ["Lab", "LabError"]
