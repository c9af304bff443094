"""BERT-large on one host with eight MI300X. Chosen by reckoning, not yet measured."""

# 8 ranks x 96 = 768 samples a step, without accumulation; what is published for A100, learning rate and steps, holds.
train_batch_size = 96
gradient_accumulation_steps = 1
eval_batch_size = 96  # needs less memory than a training step of as many samples

seed = 9031  # as published for A100
