"""Two workers on one host, one rank each."""

from config_common import *  # noqa: F403
