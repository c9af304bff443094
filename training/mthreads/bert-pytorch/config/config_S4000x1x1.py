"""BERT-large on one S4000, for throughput. Chosen by reckoning, not yet measured.

A step has 1 rank x 24 x 4 = 96 samples, as the published result on one A100, where the task's learning rate is meant
for 768.
"""

precision = "bf16"

train_batch_size = 24  # about 18 GiB of 48; 12 more where attention keeps its scores
gradient_accumulation_steps = 4
eval_batch_size = 24

decay_steps = 240_000  # as published for one A100
seed = 9031
