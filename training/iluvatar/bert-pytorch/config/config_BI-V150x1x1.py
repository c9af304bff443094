"""BERT-large on one device of a BI-V150, for throughput. Chosen by reckoning, not yet measured.

A step has 1 rank x 16 x 6 = 96 samples, as the published result on one A100, where the task's learning rate is meant
for 768.
"""

precision = "fp16"

train_batch_size = 16  # about 14 GiB of 32; 8 more where attention keeps its scores
gradient_accumulation_steps = 6
eval_batch_size = 16

decay_steps = 240_000  # as published for one A100
seed = 9031
