"""What a vendor may change without changing the task: what any training case lets it."""

from benchmarks.common.mutable_params import mutable_params as mutable_params
