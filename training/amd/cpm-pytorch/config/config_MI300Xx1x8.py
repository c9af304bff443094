"""CPM-1-medium on one host with eight MI300X. Chosen by reckoning, not yet measured."""

# 8 ranks x 32 = 256 samples a step, as published for eight A100; the published learning rate is for 256.
train_batch_size = 32
eval_batch_size = 256  # keeps nothing for a backward pass
