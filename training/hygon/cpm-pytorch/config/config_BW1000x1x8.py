"""CPM-1-medium on one host with eight BW1000, as published for eight A100. Not measured."""

train_batch_size = 32  # 8 ranks x 32 = 256 samples a step; about 13 GiB of 64
eval_batch_size = 32
