"""CPM-1-medium on one device of a BI-V150: the global batch published for one A100. Not yet measured."""

precision = "fp16"

train_batch_size = 64  # 64 x 3 = 192 samples a step; about 20 GiB of 32
gradient_accumulation_steps = 3
eval_batch_size = 192
