"""One worker on each of two hosts."""

from config_common import *  # noqa: F403
