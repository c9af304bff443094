"""GLM-large on one H200, as on one H100: 64 questions are the task's, and fit as well. Not yet measured."""

from config_H100x1x1 import *  # noqa: F403
