"""BERT-large on two hosts with eight 910B3 each, as on 910B2, which has the same memory. Not yet measured."""

from config_910B2x2x8 import *  # noqa: F403
