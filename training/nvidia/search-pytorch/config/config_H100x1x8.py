"""A search on one host with eight H100: the batch is the task's, not the memory's, as on A100. Not yet measured."""

from config_A100x1x8 import *  # noqa: F403
