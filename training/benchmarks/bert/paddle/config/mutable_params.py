"""What a vendor may change without changing the task: what any training case lets it, less what is PyTorch's."""

from benchmarks.common.mutable_params import mutable_params as of_any_case

mutable_params = [name for name in of_any_case if name != "torch_compile"]
