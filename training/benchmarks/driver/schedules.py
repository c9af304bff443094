"""Learning rate schedules as pure functions of the step. No framework, no state.

A step counts from 0: `step` is the number of optimizer steps already taken.
"""

from __future__ import annotations

from collections.abc import Callable

from utils.parameters import TrainingSettings

Schedule = Callable[[int], float]


def linear_warmup_linear_decay(
    step: int, *, peak: float, warmup_steps: int, decay_steps: int, end_factor: float = 0.0
) -> float:
    """Rise linearly to `peak` at the end of `warmup_steps`, fall linearly to `end_factor * peak`.

    The decay ends at `decay_steps` (counted from step 0) and the rate stays there: it never falls below,
    so that a run that goes on past the end of its schedule does not climb the loss. During warm-up the
    first step already has the rate `peak / warmup_steps`: a rate of 0 would waste a step.
    This is BERT's schedule (Devlin et al. 2019, appendix A.2) with `end_factor` 0.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if step >= decay_steps:
        return peak * end_factor
    remaining = (decay_steps - step) / max(1, decay_steps - warmup_steps)
    return peak * (end_factor + (1.0 - end_factor) * remaining)


def make_schedule(
    name: str, *, peak: float, warmup_steps: int, decay_steps: int, end_factor: float
) -> Schedule:
    """The schedule `name`: `linear` (warm-up, then linear decay) or `constant` (warm-up, then `peak`)."""
    end = peak if name == "constant" else None

    def rate(step: int) -> float:
        if end is not None and step >= warmup_steps:
            return end
        return linear_warmup_linear_decay(
            step, peak=peak, warmup_steps=warmup_steps, decay_steps=decay_steps, end_factor=end_factor
        )

    return rate


def schedule_of(settings: TrainingSettings) -> Schedule:
    """The schedule that `settings` name."""
    return make_schedule(
        settings.lr_schedule,
        peak=settings.learning_rate,
        warmup_steps=settings.warmup_steps,
        decay_steps=settings.decay_end or 0,
        end_factor=settings.end_learning_rate_factor,
    )
