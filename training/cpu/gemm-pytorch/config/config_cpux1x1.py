"""One process."""

from config_common import *  # noqa: F403
