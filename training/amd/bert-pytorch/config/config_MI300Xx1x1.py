"""BERT-large on one MI300X. Chosen by reckoning, not yet measured."""

# 96 need about 53 GiB of 192, about 160 where attention keeps its scores (README.md). A step is 1 rank x 96 x 8
# = 768 samples, so that one chip trains the same task as eight and may reach the target.
train_batch_size = 96
gradient_accumulation_steps = 8
eval_batch_size = 96  # needs less memory than a training step of as many samples

seed = 9031  # as published for A100
