"""GLM-large on one C500, as in FlagPerf's folder: for throughput. No exact match stands there."""

precision = "fp16"  # what its case sets, though its table says fp32

train_batch_size = 16  # FlagPerf's; a step has 16 questions
eval_batch_size = 16  # FlagPerf's
