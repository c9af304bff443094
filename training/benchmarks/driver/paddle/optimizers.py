"""The optimizer of a Paddle model."""

from __future__ import annotations

import paddle
from paddle import nn

from utils.parameters import TrainingSettings


def make_optimizer(settings: TrainingSettings, model: nn.Layer) -> paddle.optimizer.Optimizer:
    """AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101), which clips the gradients itself.

    Matrices get weight decay, vectors (biases, normalisation weights) do not.
    It is the only one that the settings of a Paddle case may name.
    """
    trained = [parameter for parameter in model.parameters() if not parameter.stop_gradient]
    decayed = {parameter.name for parameter in trained if parameter.ndim > 1}
    clip = settings.max_grad_norm
    return paddle.optimizer.AdamW(
        learning_rate=settings.learning_rate,
        beta1=settings.beta_1,
        beta2=settings.beta_2,
        epsilon=settings.epsilon,
        parameters=trained,
        weight_decay=settings.weight_decay_rate,
        apply_decay_param_fun=decayed.__contains__,
        grad_clip=None if clip is None else nn.ClipGradByGlobalNorm(clip),
    )
