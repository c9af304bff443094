"""GLM-large on one host with eight C500: the batch and the rate of FlagPerf's folder."""

precision = "fp16"  # what its case sets, though its table says fp32

train_batch_size = 16  # FlagPerf's: 8 ranks x 16 = 128 questions a step, at the rate published for 64
eval_batch_size = 16  # FlagPerf's
