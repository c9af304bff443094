"""CPM-1-medium on one H100. Chosen by reckoning, not yet measured."""

# 1 rank x 128 x 2 = 256 samples a step, so that one chip trains the same task as eight and may reach the target. Of
# 128 samples of 200 tokens some 30 GiB are kept for the backward pass (24 layers, about 50 bytes a hidden value), and
# the weights take 5 GiB with gradients and optimizer: half of the 80 GB. 256 at once might just not fit.
train_batch_size = 128
gradient_accumulation_steps = 2
eval_batch_size = 256  # keeps nothing for a backward pass
