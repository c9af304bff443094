"""One worker on one host."""

from config_common import *  # noqa: F403
