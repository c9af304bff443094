from ._base import *  # noqa: F403
from .mutable_params import mutable_params as mutable_params
