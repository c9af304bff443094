"""CPM-1-medium on one host with eight C500: the batch and the rate of FlagPerf's folder."""

precision = "fp16"  # FlagPerf's

train_batch_size = 128  # FlagPerf's: 8 ranks x 128 = 1024 samples a step
eval_batch_size = 128  # FlagPerf's

learning_rate = 2e-3  # FlagPerf's
