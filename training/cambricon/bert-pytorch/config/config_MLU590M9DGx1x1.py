"""BERT-large on one MLU590-M9DG, as on MLU590-M9: it fits 80 GiB as well. Not yet measured."""

from config_MLU590M9x1x1 import *  # noqa: F403
