"""GLM-large on one MI355X, as on one MI300X: the task's batch fits as well. Not measured."""

from config_MI300Xx1x1 import *  # noqa: F403
