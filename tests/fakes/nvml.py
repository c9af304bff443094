"""STUB of NVIDIA's library, compiled from nvml_stub.c: what stands above it is the real nvidia-ml-py."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml_stub.c")
LIBRARY = "libnvidia-ml.so.1"  # as NVIDIA's own is called, so that LD_LIBRARY_PATH brings it to any program
GPU_IS_LOST, UNKNOWN, NOT_SUPPORTED, LIBRARY_NOT_FOUND = 15, 999, 3, 12


def compile_stub(folder: Path, *options: str) -> Path:
    """The library in `folder`, made by gcc; `-DOLD_DRIVER` for one of a driver before R530."""
    path = folder / LIBRARY
    command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}", *options, "-o", str(path), str(SOURCE)]
    subprocess.run(command, check=True)
    return path


class StubNvml:
    """The library, loaded in this process."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))

    def answer(self, function: str, device: int, status: int) -> None:
        """Let a function, or a field (`field 185`), answer with an error from now on."""
        self.library.stub_answer(function.encode(), device, status)

    def reset(self) -> None:
        """Let all answer again."""
        self.library.stub_reset()


def compile_smi(folder: Path) -> Path:
    """A stub of nvidia-smi, above the library that `compile_stub` has put into `folder`."""
    path, source = folder / "nvidia-smi", SOURCE.with_name("nvidia_smi_stub.c")
    command = ["gcc", "-o", str(path), str(source), str(folder / LIBRARY), "-Wl,-rpath,$ORIGIN"]
    subprocess.run(command, check=True)
    return path
