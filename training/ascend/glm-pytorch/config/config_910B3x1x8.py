"""GLM-large on one host with eight 910B3, as on 910B2, which has the same memory. Not yet measured."""

from config_910B2x1x8 import *  # noqa: F403
