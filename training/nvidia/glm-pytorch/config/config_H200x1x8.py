"""GLM-large on one host with eight H200, as with eight H100: the learning rate bounds the batch, not the memory."""

from config_H100x1x8 import *  # noqa: F403
