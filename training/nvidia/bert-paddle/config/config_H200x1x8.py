"""BERT-large on one host with eight H200, as with eight H100: 48 samples a rank keep either chip busy."""

from config_H100x1x8 import *  # noqa: F403
