"""Two processes on one host: a global batch of 64."""

train_batch_size = 32
