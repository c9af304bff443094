"""GLM-large on eight stacks, four cards, of Max 1550, with the batch published for eight A100. Not measured."""

train_batch_size = 8  # 8 ranks x 8 = 64 questions a step; about 11 GiB of 64
eval_batch_size = 8
