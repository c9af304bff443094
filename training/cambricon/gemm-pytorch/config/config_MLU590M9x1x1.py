"""One MLU590-M9. Without fp64: what torch_mlu calls so is fp32, and the check of the result would end the case."""

sizes = dict.fromkeys(("fp32", "tf32", "bf16", "fp16", "int8", "fp8"), (8192, 8192, 8192))  # the case's own
