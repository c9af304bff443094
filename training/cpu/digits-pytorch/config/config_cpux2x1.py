"""One process on each of two hosts: a global batch of 64."""

train_batch_size = 32
