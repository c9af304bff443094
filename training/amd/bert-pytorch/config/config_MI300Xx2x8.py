"""BERT-large on two hosts with eight MI300X each. Chosen by reckoning, not yet measured."""

# 16 ranks x 96 = 1536 samples a step and their schedule, as published for sixteen A100.
train_batch_size = 96
gradient_accumulation_steps = 1
eval_batch_size = 96  # needs less memory than a training step of as many samples

decay_steps = 20_000

seed = 9031
