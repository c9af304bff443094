"""GLM-large on one 910B2. Chosen by reckoning, not yet measured."""

# 1 rank x 32 x 2 = 64 questions a step, so that one chip trains the same task as eight and may reach the target.
train_batch_size = 32
gradient_accumulation_steps = 2
eval_batch_size = 32
