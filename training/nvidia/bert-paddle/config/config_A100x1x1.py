"""BERT-large on one A100, with FlagPerf's settings for one: for throughput. No result is published.

A step has 12 samples where the task's learning rate is meant for 96.
"""

train_batch_size = 12  # published
eval_batch_size = 12  # published: that of training

# Published: the rate stays as it is after the warm-up. The cap of 960,000 samples is 80,000 steps here.
decay_steps = 10_000_000

seed = 9031  # published
