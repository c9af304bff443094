"""BERT-large on two hosts, eight Max 1100 each, with the batch published for sixteen A100. Not measured."""

# 16 ranks x 16 x 6 = 1536 samples a step and their schedule.
train_batch_size = 16
gradient_accumulation_steps = 6
eval_batch_size = 16  # needs less memory than a training step of as many samples

decay_steps = 20_000

seed = 9031
