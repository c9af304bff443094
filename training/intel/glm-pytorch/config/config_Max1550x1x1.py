"""GLM-large on a stack of a Max 1550, with the batch published for one A100: for throughput. Not measured."""

train_batch_size = 16  # a step has 16 questions where eight ranks take 64; about 16 GiB of 64
eval_batch_size = 16
