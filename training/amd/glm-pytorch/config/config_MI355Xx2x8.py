"""GLM-large on two hosts with eight MI355X each, as with MI300X, where the rate bounds the batch. Not measured."""

from config_MI300Xx2x8 import *  # noqa: F403
