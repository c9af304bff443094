"""What one rank's start needs of PyTorch."""

from __future__ import annotations

import torch
from torch import distributed

from benchmarks.driver.pytorch import hooks
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine as TrainingEngine
from benchmarks.driver.pytorch.process_group import ProcessGroup
from utils.parameters import MeasurementSettings, TrainingSettings

# Where PyTorch, or a plug-in once it is imported, says the version of a vendor's runtime: torch.version.cuda and so on.
_RUNTIMES = ("cuda", "hip", "xpu", "cann", "musa")

__all__ = ["Device", "ProcessGroup", "TrainingEngine", "hooks", "prepare", "versions"]


def prepare(settings: TrainingSettings | MeasurementSettings, device_type: str, threads: int) -> None:
    """Before the device is opened: threads on the host, and fp32 that is fp32."""
    torch.set_num_threads(threads)
    # Convolutions alone would round their inputs to TF32, which is another precision, with another peak.
    torch.backends.cudnn.allow_tf32 = False


def versions() -> dict[str, str | None]:
    """PyTorch and the libraries that it brings for chips and collectives; None for those that it was built without."""
    has_nccl = distributed.is_available() and distributed.is_nccl_available()
    nccl = torch.cuda.nccl.version() if has_nccl else ()  # type: ignore[no-untyped-call]
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    runtimes = {name: getattr(torch.version, name, None) for name in _RUNTIMES}
    return {
        "torch": torch.__version__,
        **{name: None if version is None else str(version) for name, version in runtimes.items()},
        "cudnn": None if cudnn is None else str(cudnn),
        "nccl": ".".join(map(str, nccl)) or None,
    }
