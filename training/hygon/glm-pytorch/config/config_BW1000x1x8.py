"""GLM-large on one host with eight BW1000, with FlagPerf's batch for eight K100. Not measured."""

train_batch_size = 8  # FlagPerf's: 8 ranks x 8 = 64 questions a step
eval_batch_size = 8
