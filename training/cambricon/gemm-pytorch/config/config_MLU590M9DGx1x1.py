"""One MLU590-M9DG, as one MLU590-M9."""

from config_MLU590M9x1x1 import *  # noqa: F403
