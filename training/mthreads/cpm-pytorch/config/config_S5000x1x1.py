"""CPM-1-medium on one S5000: the global batch published for one A100, for throughput. Not yet measured."""

precision = "bf16"

train_batch_size = 192  # 192 x 1 = 192 samples a step; about 44 GiB of 80
gradient_accumulation_steps = 1
eval_batch_size = 192
