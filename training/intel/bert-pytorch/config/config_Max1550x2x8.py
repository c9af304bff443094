"""BERT-large on two hosts, eight stacks of Max 1550 each, with the batch published for sixteen A100. Not measured."""

# 16 ranks x 24 x 4 = 1536 samples a step and their schedule.
train_batch_size = 24
gradient_accumulation_steps = 4
eval_batch_size = 24  # needs less memory than a training step of as many samples

decay_steps = 20_000

seed = 9031
