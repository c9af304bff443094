"""GLM-large on one host with eight BI-V100: the settings of FlagPerf's folder."""

precision = "fp16"  # what its case sets, though its table says fp32

train_batch_size = 8  # FlagPerf's: 8 ranks x 8 = 64 questions a step
eval_batch_size = 8  # FlagPerf's
