"""CPM-1-medium on one A100: the published global batch, for throughput. No embedding average is published for it."""

precision = "fp16"  # published

# Published are 192 at once, with every layer computed twice (activation checkpointing). Here nothing is computed
# twice, and 192 at once would need about 44 GiB of 40; 96 need 26. A step has 192 samples where eight boards take 256.
train_batch_size = 96
gradient_accumulation_steps = 2
eval_batch_size = 192  # published: that of training; keeps nothing for a backward pass
