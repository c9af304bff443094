"""CPM-1-medium on one H200, as on one H100: 256 samples are the task's. Not yet measured."""

from config_H100x1x1 import *  # noqa: F403
