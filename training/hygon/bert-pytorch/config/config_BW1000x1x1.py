"""BERT-large on one BW1000, as published for one A100: for throughput. Not measured.

A step has 1 rank x 24 x 4 = 96 samples where the task's learning rate is meant for 768.
"""

train_batch_size = 24  # about 18 GiB of 64, about 43 where attention keeps its scores (README.md)
gradient_accumulation_steps = 4
eval_batch_size = 24  # needs less memory than a training step of as many samples

decay_steps = 240_000  # eight times that of eight chips, for steps of an eighth

seed = 9031
