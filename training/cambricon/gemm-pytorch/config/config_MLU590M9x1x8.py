"""Eight MLU590-M9 of one host at the same time, each as one alone."""

from config_MLU590M9x1x1 import *  # noqa: F403
