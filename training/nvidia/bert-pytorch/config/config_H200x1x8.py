"""BERT-large on one host with eight H200. Chosen by reckoning, not yet measured."""

# 8 ranks x 96 = 768 samples a step, without accumulation: 96 fill the memory as 24 fill that of an A100 (see
# config_H200x1x1.py), and what is published for learning rate and steps holds.
train_batch_size = 96
gradient_accumulation_steps = 1
eval_batch_size = 96  # needs less memory than a training step of as many samples

seed = 9031  # published
