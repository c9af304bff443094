"""CPM-1-medium on one MI300X. Chosen by reckoning, not yet measured."""

# 256 samples a step, so that one chip trains the same task as eight and may reach the target. About 56 GiB of 192, and
# about 100 where attention keeps its scores.
train_batch_size = 256
eval_batch_size = 256  # keeps nothing for a backward pass
