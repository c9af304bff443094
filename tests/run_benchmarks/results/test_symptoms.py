"""What frameworks, runtimes and drivers print, and the class that it names; and what no class is made of."""

from __future__ import annotations

import pytest

from run_benchmarks.results.symptoms import class_in, raised_in, was_killed
from utils.events import Event, format_line
from utils.records import FailureClass

SAID = {
    FailureClass.DEVICE_OUT_OF_MEMORY: (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "torch.cuda.OutOfMemoryError: HIP out of memory.",
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)",
        "ncclUnhandledCudaError: Call to CUDA function failed.\nCuda failure 'out of memory'",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "Out of memory error on GPU 0. Cannot allocate 1.000000GB memory on GPU 0",
    ),
    FailureClass.HOST_OUT_OF_MEMORY: (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: not enough memory: you tried "
        "to allocate 8 bytes. Error code 12 (Cannot allocate memory)",
        "Traceback (most recent call last):\nMemoryError",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array",
        "OSError: [Errno 12] Cannot allocate memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
    ),
    FailureClass.CONTAINER_OUT_OF_MEMORY: (
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are out of shared memory. Please try to raise your shared memory limit.",
    ),
    FailureClass.DISK_FULL: (
        "OSError: [Errno 28] No space left on device: '/checkpoints/step7'",
        "no space left on device: 0 bytes at /workspace/flagperf/result",
        "controller: the state of the search cannot be kept: database or disk is full",
    ),
    FailureClass.OUT_OF_MEMORY: ("RuntimeError: the cache is out of memory",),
    FailureClass.DEVICE_LOST: (
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
        "Unable to determine the device handle for GPU0: GPU is lost. Reboot the system to recover this GPU",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
    ),
    FailureClass.DEVICE_MISSING: (
        "RuntimeError: No CUDA GPUs are available",
        "OSError: (External) CUDA error(100), no CUDA-capable device is detected.",
        "RuntimeError: CUDA error: invalid device ordinal",
    ),
    FailureClass.DIVERGED: (
        "benchmarks.driver.loop.DivergedError: rank 0: the loss is nan after step 7: training has diverged",
    ),
}


@pytest.mark.parametrize(
    ("kind", "words"), [(kind, words) for kind, all_words in SAID.items() for words in all_words]
)
def test_words_that_name_a_class(kind: FailureClass, words: str) -> None:
    assert class_in(f"step 7 of 100\n{words}\n    -> lower learning_rate\n") is kind


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: NCCL error: unhandled cuda error",
        "RuntimeError: CUDA error: device-side assert triggered",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, MMU Fault",  # a program's own
        "ValueError: batch 3 of shard 7 is empty",
        "RuntimeError: unable to write to file </torch_7_1_0>: No space left on device (28)",
        format_line(Event("STEP_END", {"note": "CUDA out of memory"})),
    ],
)
def test_words_that_name_none(words: str) -> None:
    assert class_in(words) is None


def test_a_loaders_worker_that_was_killed_is_told_by_its_rank() -> None:
    assert was_killed(1, "RuntimeError: DataLoader worker (pid 41) is killed by signal: Killed. ")
    assert was_killed(-9, "") and was_killed(137, "") and not was_killed(1, "killed by signal: Bus error")


@pytest.mark.parametrize("begins", ["Xid (PCI:", "worker (pid", "torch."])
def test_words_that_only_begin_over_and_over_cost_no_more_than_others(begins: str) -> None:
    """Where each beginning is looked at to the end of the line, this takes minutes."""
    line = begins * (400_000 // len(begins))
    assert class_in(line) is None and not was_killed(1, line)


def test_the_last_exception_is_what_was_raised() -> None:
    assert raised_in("ValueError: a\nDuring handling\nKeyError: 'b'\n    -> mend it") == "KeyError: 'b'"
