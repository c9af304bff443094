"""GLM-large on one BW1000, with FlagPerf's batch for one K100: for throughput. Not measured."""

train_batch_size = 16  # FlagPerf's; a step has 16 questions where eight cards take 64
eval_batch_size = 16  # FlagPerf's
