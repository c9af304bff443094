"""CPM-1-medium on one Max 1100: the global batch published for one A100, for throughput. Not measured."""

# About 20 GiB of 48. A step has 1 rank x 64 x 3 = 192 samples where eight ranks take 256.
train_batch_size = 64
gradient_accumulation_steps = 3
eval_batch_size = 64  # keeps nothing for a backward pass
