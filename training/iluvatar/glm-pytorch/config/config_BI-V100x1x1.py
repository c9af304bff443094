"""GLM-large on one BI-V100, as in FlagPerf's folder: for throughput. No exact match stands there."""

precision = "fp16"  # what its case sets, though its table says fp32

train_batch_size = 8  # FlagPerf's; a step has 8 questions
eval_batch_size = 8  # FlagPerf's
