"""BERT-large on one host with eight H100. Chosen by reckoning, not yet measured."""

precision = "bf16"  # as fast as fp16 on Hopper, and its range needs no loss scaling

# Twice the memory of the A100 for which 24 is published, so 48; with half the accumulation a step stays
# 8 ranks x 48 x 2 = 768 samples, and what is published for learning rate and steps holds.
train_batch_size = 48
gradient_accumulation_steps = 2
eval_batch_size = 48  # needs less memory than a training step of as many samples

learning_rate = 3.5e-4  # published for a global batch of 768
seed = 9031  # published
