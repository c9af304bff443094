"""BERT-large on two hosts with eight BW1000 each, as published for sixteen A100. Not measured."""

# 16 ranks x 24 x 4 = 1536 samples a step and their schedule.
train_batch_size = 24
eval_batch_size = 24  # needs less memory than a training step of as many samples

decay_steps = 20_000

seed = 9031
