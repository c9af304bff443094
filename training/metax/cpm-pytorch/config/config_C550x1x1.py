"""CPM-1-medium on one C550: the global batch published for one A100, for throughput. Not yet measured."""

precision = "bf16"

train_batch_size = 96  # 96 x 2 = 192 samples a step; about 26 GiB of 64
gradient_accumulation_steps = 2
eval_batch_size = 192
