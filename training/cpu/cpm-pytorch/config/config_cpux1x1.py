"""The CPM demo: a global batch of 64 samples."""

from config_common import *  # noqa: F403

train_batch_size = 64
