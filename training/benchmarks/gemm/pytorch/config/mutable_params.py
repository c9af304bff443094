"""What a vendor may change without changing the task: sizes that suit the chip, which the figures name."""

mutable_params = ["sizes", "windows", "window_seconds", "max_warmup_windows", "cpu_threads", "seed"]
