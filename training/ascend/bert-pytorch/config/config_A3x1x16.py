"""BERT-large on one host with eight A3, which are sixteen devices. Chosen by reckoning, not yet measured."""

# 16 ranks x 24 x 2 = 768 samples a step, as published for eight A100.
train_batch_size = 24
gradient_accumulation_steps = 2
eval_batch_size = 24

seed = 9031  # that of the results published for A100
