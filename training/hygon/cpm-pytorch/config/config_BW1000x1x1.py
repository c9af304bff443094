"""CPM-1-medium on one BW1000: the global batch published for one A100, for throughput. Not measured."""

# About 26 GiB of 64. A step has 1 rank x 96 x 2 = 192 samples where eight cards take 256.
train_batch_size = 96
gradient_accumulation_steps = 2
eval_batch_size = 96  # keeps nothing for a backward pass
