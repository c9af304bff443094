"""CPM-1-medium on one host with eight MI355X, as with eight MI300X, where the rate bounds the batch. Not measured."""

from config_MI300Xx1x8 import *  # noqa: F403
