"""Processors: small matrices and short windows, so that all of it takes seconds."""

sizes = dict.fromkeys(("fp64", "fp32", "tf32", "bf16", "fp16", "int8", "fp8"), (512, 512, 512))

window_seconds = 0.05  # fp64, the slowest: 5 to 15 ms a call and core
max_warmup_windows = 20  # a machine that does other things too may never be steady; the result says so
