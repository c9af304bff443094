"""GLM-large on eight Max 1100, with the batch published for eight A100. Not measured."""

train_batch_size = 8  # 8 ranks x 8 = 64 questions a step; about 11 GiB of 48
eval_batch_size = 8
