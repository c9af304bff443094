"""BERT-large on one S5000, for throughput. Chosen by reckoning, not yet measured.

A step has 1 rank x 48 x 2 = 96 samples, as the published result on one A100, where the task's learning rate is meant
for 768.
"""

precision = "bf16"

train_batch_size = 48  # about 29 GiB of 80; 23 more where attention keeps its scores
gradient_accumulation_steps = 2
eval_batch_size = 48

decay_steps = 240_000  # as published for one A100
seed = 9031
