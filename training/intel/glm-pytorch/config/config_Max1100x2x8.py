"""GLM-large on two hosts, eight Max 1100 each, with the batch published for sixteen A100. Not measured."""

train_batch_size = 8  # 16 ranks x 8 = 128 questions a step; about 11 GiB of 48
eval_batch_size = 8
