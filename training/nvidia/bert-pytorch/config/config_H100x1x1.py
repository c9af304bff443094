"""BERT-large on one H100. Chosen by reckoning, not yet measured."""

precision = "bf16"  # as fast as fp16 on Hopper, and its range needs no loss scaling

# Twice the memory of the A100 for which 24 is published, so 48. A step is 1 rank x 48 x 16 = 768 samples, so that
# one chip trains the same task as eight and may reach the target.
train_batch_size = 48
gradient_accumulation_steps = 16
eval_batch_size = 48  # needs less memory than a training step of as many samples

learning_rate = 3.5e-4  # published for a global batch of 768
seed = 9031  # published
