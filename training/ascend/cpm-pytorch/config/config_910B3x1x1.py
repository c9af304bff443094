"""CPM-1-medium on one 910B3, as on 910B2, which has the same memory. Not yet measured."""

from config_910B2x1x1 import *  # noqa: F403
