"""The devices of a node that Slurm has granted to the job: ranks use these, in Slurm's order, and no others."""

from __future__ import annotations

import re

from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.transports.base import CommandError, Transport
from utils.errors import FlagPerfError
from utils.text_files import one_line, shortened

QUICK_S = 30.0
# Slurm's numbers of the devices of a step, and of a job. Where it confines a step to them, the variables that a
# framework reads count within the step, and a container, which is no part of it, sees all.
OF_SLURM = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
# Who reads the first counts within what the second has left.
WITHIN = {"HIP_VISIBLE_DEVICES": "ROCR_VISIBLE_DEVICES"}
SHOW = 'for name; do eval "value=\\${$name-}"; printf "%s\\n" "$value"; done'
_DEVICE = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")  # a number, or the name of a part of one


async def granted_devices(plan: Plan, case: CasePlan, transport: Transport) -> tuple[str, ...]:
    """The devices as the case's variable is to name them; empty where nobody grants any.

    Raises:
        FlagPerfError: they are fewer than the case's ranks, or what is granted cannot be read.
    """
    visible = case.visible_devices_env
    if not (plan.cluster.slurm and visible):
        return ()
    within = WITHIN.get(visible, visible)
    done = await transport.run(("sh", "-c", SHOW, "sh", visible, within, *OF_SLURM), timeout=QUICK_S)
    if not done.ok:
        raise CommandError(done)
    own, outer, *slurms = (done.stdout.splitlines() + [""] * 4)[:4]
    numbers = next(filter(None, slurms), "")
    if plan.run.uses_images:
        listed = numbers or own
    elif outer and not own:
        listed = ",".join(str(number) for number in range(len(outer.split(","))))
    else:
        listed = own or numbers
    return _checked(case, tuple(filter(None, listed.split(","))))


def _checked(case: CasePlan, devices: tuple[str, ...]) -> tuple[str, ...]:
    settings, shown = case.settings, shortened(one_line(",".join(devices)), 200)
    if not all(_DEVICE.fullmatch(device) for device in devices):
        remedy = "see what the site's prolog, or who began the job, has set"
        raise FlagPerfError(f"{case.visible_devices_env} names no devices: {shown}", remedy=remedy)
    if devices and len(devices) < settings.nproc:
        raise FlagPerfError(
            f"{settings.name} wants {settings.nproc} devices; Slurm has granted {len(devices)} here: {shown}",
            remedy=f'ask for them: gres="gpu:{settings.nproc}" in HOSTS = slurm(...), or of sbatch or salloc',
        )
    return devices
