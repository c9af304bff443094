"""BERT-large on one C550, for throughput. Chosen by reckoning, not yet measured.

A step has 1 rank x 32 x 3 = 96 samples, as the published result on one A100, where the task's learning rate is meant
for 768.
"""

precision = "bf16"

train_batch_size = 32  # about 22 GiB of 64; 15 more where attention keeps its scores
gradient_accumulation_steps = 3
eval_batch_size = 32

decay_steps = 240_000  # as published for one A100
seed = 9031
