"""A search on two hosts with eight A100 each: a worker is a host, so all is as on one. Not yet measured."""

from config_A100x1x8 import *  # noqa: F403
