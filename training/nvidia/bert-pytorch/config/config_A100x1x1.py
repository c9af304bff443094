"""BERT-large on one A100, as published: for throughput. No accuracy is published, and none is expected.

A step has 1 rank x 24 x 4 = 96 samples where the task's learning rate is meant for 768.
"""

precision = "fp16"  # "amp" in the published table: mixed precision with loss scaling

train_batch_size = 24  # what a board of 40 GB holds: 35.4 GiB are published
gradient_accumulation_steps = 4  # published
eval_batch_size = 24  # published: that of training

decay_steps = 240_000  # published: eight times that of eight chips, for steps of an eighth

seed = 9031  # published
