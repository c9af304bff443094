"""Container options: their reasons, and what the engine's own parser says: no container is made, for there is no such
image.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from run_benchmarks.conformance.figures import says_nothing
from run_benchmarks.conformance.records import CheckResult, failed, not_proven
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.handover import HAND_OVER, SEEN_BY_ALL, words_with_secrets
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.runtimes.engine import option_values
from utils.errors import nearest

ENGINES = ("docker", "podman")
SETTING = "CONTAINER_OPTIONS"
# RFC 6761: no host has such a name. And it is not asked for: --pull=never.
NO_IMAGE = "no-registry.invalid/flagperf/conformance:none"
NO_SUCH_IMAGE = ("no such image", "image not known", "unable to find image")
# What its server says of a host without the vendor's driver, once its client has taken the options.
HOST_LACKS = ("unknown runtime", "bind source path does not exist")
RANKS = 2
LIMIT_S = 60.0
CAP_ADD = "--cap-add"
NEAR = 0.8  # all of them begin with much the same words
# capabilities(7), and ALL; an engine asks for them only once it makes a container.
CAPABILITIES = (
    "ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH "
    "FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN "
    "NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT "
    "SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM"
)


def options_trouble(vendor: Vendor) -> Iterator[CheckResult]:
    """Options without a reason, and what the engine says of them, other than that there is no image."""
    file = read_config_file(vendor.folder / VENDOR_FILE, Problems(), "")
    where = file.where(SETTING) if file else str(vendor.folder / VENDOR_FILE)
    trouble = [
        *_unexplained(file.values.get(SETTING) if file else None),
        *_no_capability(vendor.container_options),
    ]
    yield from (failed(detail, where, remedy) for detail, remedy in trouble)
    # as a run does: what is secret by its name goes to the engine by standard input
    vendor = replace(vendor, container_options=Secrets().split_options(vendor.container_options)[0])
    seen = words_with_secrets(vendor.container_options, Secrets())
    yield from (failed(f"{word} {SEEN_BY_ALL}", where, HAND_OVER) for word in seen)
    if not seen:
        yield from _of_engine(vendor, where)


def _unexplained(options: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the reasons, and what to do."""
    remedy = f'write {SETTING} = {{"--device=/dev/acme{{n}}": "the chip", ...}}: each with why it is needed'
    if options and not isinstance(options, dict):
        yield "its options have no reasons", remedy
    for option, reason in options.items() if isinstance(options, dict) else ():
        if says_nothing(reason):
            yield (
                f"the reason of {option} is {reason!r}, which says nothing",
                "write why containers need it, and for what",
            )


def _no_capability(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What no kernel has, and what to do."""
    for name in option_values(options, CAP_ADD):
        if name.upper().removeprefix("CAP_") not in CAPABILITIES.split():
            remedy = (
                nearest(name.upper(), CAPABILITIES.split(), NEAR)
                or "write one of capabilities(7), without CAP_"
            )
            yield f"{CAP_ADD}={name} is no capability", remedy


def _of_engine(vendor: Vendor, where: str) -> Iterator[CheckResult]:
    """What the engine's parser says."""
    engine = next((path for path in map(shutil.which, ENGINES) if path), None)
    if engine is None:
        yield not_proven(
            f"there is neither of {', '.join(ENGINES)} here to read them", where, "check it where one is"
        )
        return
    try:
        yield from _answers(engine, vendor, where)
    except (OSError, subprocess.SubprocessError) as error:
        yield not_proven(f"{engine} does not answer: {error}", where)


def _answers(engine: str, vendor: Vendor, where: str) -> Iterator[CheckResult]:
    """What an engine that may not answer says. Without its server docker blames options that it would take."""
    done, words = _asked(engine, "version")
    if done:
        remedy = "start it, or let this user ask it"
        yield not_proven(f"{engine} does not answer: {words or f'it ended with {done}'}", where, remedy)
        return
    words = _refusal(engine, vendor.options_for(RANKS))
    if any(each in words.lower() for each in (*HOST_LACKS, *NO_SUCH_IMAGE)):
        if NO_IMAGE.rpartition(":")[0] not in words and not any(each in words.lower() for each in HOST_LACKS):
            yield failed(
                f"{engine} takes a word of them for the image: {words}", where, "write options alone"
            )
        return
    which = _refused(engine, vendor, words)
    if not engine.endswith(ENGINES[0]):  # an option may be one engine's own
        yield not_proven(f"{engine} refuses {which}: {words}; there is no {ENGINES[0]} to ask", where)
    else:
        yield failed(
            f"{engine} refuses {which}: {words}", where, f"correct the option: {engine} create --help"
        )


def _refused(engine: str, vendor: Vendor, words: str) -> str:
    """The option that the engine refuses by itself in these words, which need not name it; else `them`."""
    for option in _one_by_one(vendor.container_options):
        if _refusal(engine, replace(vendor, container_options=option).options_for(RANKS)) == words:
            return " ".join(option)
    return "them"


def _one_by_one(options: Sequence[str]) -> list[tuple[str, ...]]:
    """Each option, with the words that belong to it."""
    begins = [number for number, word in enumerate(options) if word.startswith("-")]
    return [tuple(options[begin:end]) for begin, end in zip(begins, [*begins[1:], len(options)], strict=True)]


def _refusal(engine: str, options: tuple[str, ...]) -> str:
    """Why the engine makes no container with these options; it never does."""
    done, words = _asked(engine, "create", "--pull=never", *options, NO_IMAGE)
    return words or f"it ended with {done} and says nothing"


def _asked(engine: str, *words: str) -> tuple[int, str]:
    """The exit code and the first line of what it complains of."""
    argv = (engine, *words)
    # where a run has it started, too
    done = subprocess.run(argv, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return done.returncode, lines[0] if lines else ""
