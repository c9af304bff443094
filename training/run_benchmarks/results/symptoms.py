"""What the last words of ranks, and the kernel's counters, say of a failure's kind: only what says it clearly."""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from utils.events import PREFIX
from utils.memory_kills import OF_GROUP
from utils.memory_kills import PREFIX as KILL_PREFIX
from utils.records import FailureClass

KILLED = (-9, 137)
# These are looked for in what a task has written. A part that may go on has a limit, or the beginning of a line before
# it: else each place of a line that goes on would be looked at from each before it.
# What tools and engines say of a full disk; tar, of the file that took the last room; SQLite.
DISK_FULL = re.compile(
    r"no space left on device|disk quota exceeded|wrote only \d{1,20} of \d{1,20} bytes|"
    r"database or disk is full",
    re.IGNORECASE,
)
# The line of a Python traceback that says what was raised; a launcher may prepend the rank's name.
_RAISED = re.compile(r"(\[\w+\]:? *)?([\w.]*(Error|Exception|Interrupt|Exit)\b.*)")
# What else is an error by its form: what a shell, a library or a runtime says of a call that failed, a level of a log,
# a native abort. "error: 0.12" is a figure.
_SAID_BY_SYSTEM = "|".join(sorted(re.escape(os.strerror(code)) for code in errno.errorcode))
_ERROR = re.compile(
    rf": ({_SAID_BY_SYSTEM}|command not found)\b|\bNo module named \S|\b(ERROR|FATAL|CRITICAL)\b|"
    r"\b([Ee]rror|[Ff]atal|[Pp]anic|[Ff]ailed|[Aa]borted):(?! {0,8}([-+]?[.\d]|nan\b|inf\b))|"
    r"\b(terminate called|core dumped|Segmentation fault|Check failed|Assertion .{1,200} failed)\b"
)
# A loader's worker that was killed ends its rank, which says so: PyTorch.
_WORKER_KILLED = re.compile(r"worker \(pid[^)\n]{0,80}\) (is|was) killed by signal: Killed", re.IGNORECASE)
_MEMORY_USE = re.compile(
    rf"^{re.escape(KILL_PREFIX + OF_GROUP)} limit_bytes=(\d{{1,16}})(?: peak_bytes=(\d{{1,16}}))?$",
    re.MULTILINE,
)
_CHIP: Final = r"(CUDA|HIP|ROCm|GPU|NPU|MLU|MUSA|XPU|GCU|DCU)"
# The first that matches counts. Each is what a framework, a runtime or a driver prints, and no word of a user's code.
_WORDS = (
    (FailureClass.DIVERGED, r"\bDivergedError: "),
    (
        FailureClass.DEVICE_LOST,
        r"fallen off the bus|\bGPU is lost\b|\b\w*DEVICE_LOST\b|\bdevice (is |was |has been )?lost\b|"
        r"uncorrectable (ECC|NVLink) error|ECCUncorrectable|\bXid \(PCI:[^)\n]{0,80}\): (48|74|79|95|119|120)\b",
    ),
    (
        FailureClass.DEVICE_OUT_OF_MEMORY,
        rf"\btorch(\.\w{{1,40}}){{0,5}}\.OutOfMemoryError\b|\b{_CHIP}\b.{{0,60}}\bout of memory\b|"
        rf"\bout of memory\b.{{0,30}}\b(on|of) {_CHIP}\b|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
        r"CUBLAS_STATUS_ALLOC_FAILED|ERROR_OUT_OF_DEVICE_MEMORY",
    ),
    (FailureClass.CONTAINER_OUT_OF_MEMORY, r"\bout of shared memory\b"),
    # PyTorch's files in shared memory are no disk's
    (FailureClass.DISK_FULL, rf"^(?!.*(/dev/shm|/torch_)).*({DISK_FULL.pattern})"),
    (
        FailureClass.DEVICE_MISSING,
        r"\bNo (CUDA|HIP|XPU) (GPUs|devices) are available|no CUDA-capable device is detected|"
        r"cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE|\binvalid device ordinal\b",
    ),
    (
        FailureClass.HOST_OUT_OF_MEMORY,
        r"^(\[\w+\]:? *)?(numpy\.\S*\.)?_?(Array)?MemoryError\b|\bstd::bad_alloc\b|"
        r"DefaultCPUAllocator: (can't|not enough)|\bcannot allocate memory\b",
    ),
    (FailureClass.OUT_OF_MEMORY, r"out of memory|outofmemory|oom-kill"),
)
_CLASSES = tuple((kind, re.compile(words, re.IGNORECASE | re.MULTILINE)) for kind, words in _WORDS)


def class_in(words: str) -> FailureClass | None:
    """The class that a rank's last words name; its events are none of them."""
    own = "\n".join(own_lines(words))
    return next((kind for kind, pattern in _CLASSES if pattern.search(own)), None)


def raised_in(words: str) -> str:
    """The last line that says what was raised; empty where there is none."""
    raised = [match[2] for line in own_lines(words) if (match := _RAISED.match(line))]
    return next(reversed(raised), "")


def error_line_in(words: str) -> str:
    """The last line that is an error and no progress; what was raised before all others; empty where none is."""
    return raised_in(words) or next(filter(is_error, reversed(own_lines(words))), "")


def is_error(line: str) -> bool:
    """Whether a line says by its form that something went wrong."""
    has_form = _RAISED.match(line.strip()) or _ERROR.search(line)
    return has_form is not None or class_in(line) is not None


def own_lines(words: str) -> list[str]:
    """The lines that hold no event."""
    return [line.strip() for line in words.splitlines() if PREFIX not in line]


def memory_kill_in(start_log: str) -> FailureClass | None:
    """Whose memory it was that the kernel killed for, by the last line that a launcher wrote of it."""
    lines = [line[len(KILL_PREFIX) :] for line in start_log.splitlines() if line.startswith(KILL_PREFIX)]
    if not lines:
        return None
    of_group = lines[-1].startswith(OF_GROUP)
    return FailureClass.CONTAINER_OUT_OF_MEMORY if of_group else FailureClass.HOST_OUT_OF_MEMORY


def memory_use_in(start_log: str) -> str:
    """What a launcher wrote of the limit of memory that was met, in words; empty where it wrote nothing of it."""
    uses = _MEMORY_USE.findall(start_log)
    limit, peak = (int(number or 0) / 2**20 for number in uses[-1]) if uses else (0.0, 0.0)
    most = f", of which {peak:,.0f} MiB were in use at most" if peak else ""
    return f"its memory is limited to {limit:,.0f} MiB{most}" if limit else ""


def no_room_in(start_log: str) -> str:
    """What a launcher wrote of a full disk, as a further line: a rank whose log had no room could not."""
    lines = [line for line in start_log.splitlines() if DISK_FULL.search(line)]
    return f"\n{lines[-1]}" if lines else ""


def was_killed(code: int | None, words: str) -> bool:
    """Whether a process, or one that it had started and tells of, was ended by SIGKILL."""
    return code in KILLED or _WORKER_KILLED.search(words) is not None
