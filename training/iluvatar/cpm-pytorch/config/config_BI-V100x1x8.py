"""CPM-1-medium on one host with eight BI-V100: the settings of FlagPerf's folder."""

precision = "fp16"  # FlagPerf's

train_batch_size = 32  # FlagPerf's: 8 ranks x 32 = 256 samples a step
eval_batch_size = 32  # FlagPerf's
