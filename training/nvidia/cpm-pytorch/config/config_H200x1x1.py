"""CPM-1-medium on one H200. Chosen by reckoning, not yet measured."""

# 256 samples a step, so that one chip trains the same task as eight and may reach the target. Of 256 samples of 200
# tokens some 60 GiB are kept for the backward pass (24 layers, about 50 bytes a hidden value), and the weights take
# 5 GiB with gradients and optimizer: half of the 141 GB.
train_batch_size = 256
eval_batch_size = 256  # keeps nothing for a backward pass
