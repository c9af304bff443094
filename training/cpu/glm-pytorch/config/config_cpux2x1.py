"""The GLM demo: a global batch of 32 questions."""

from config_common import *  # noqa: F403

train_batch_size = 16
