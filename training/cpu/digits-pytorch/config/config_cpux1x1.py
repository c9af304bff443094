"""One process: a global batch of 64."""

train_batch_size = 64
