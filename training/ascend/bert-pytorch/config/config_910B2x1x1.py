"""BERT-large on one 910B2. Chosen by reckoning, not yet measured."""

# 1 rank x 32 x 24 = 768 samples a step, so that one chip trains the same task as eight and may reach the target.
train_batch_size = 32
gradient_accumulation_steps = 24
eval_batch_size = 32

seed = 9031  # that of the results published for A100
