"""BERT-large on one Max 1100, with the batch published for one A100: for throughput. Not measured.

A step has 1 rank x 16 x 6 = 96 samples where the task's learning rate is meant for 768.
"""

train_batch_size = 16  # about 14 GiB of 48, about 32 where attention keeps its scores (README.md)
gradient_accumulation_steps = 6
eval_batch_size = 16  # needs less memory than a training step of as many samples

decay_steps = 240_000  # eight times that of eight chips, for steps of an eighth

seed = 9031
