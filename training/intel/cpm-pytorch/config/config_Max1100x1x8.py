"""CPM-1-medium on eight Max 1100, with the batch published for eight A100. Not measured."""

train_batch_size = 32  # 8 ranks x 32 = 256 samples a step; about 13 GiB of 48
eval_batch_size = 32
