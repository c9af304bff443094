"""CPM-1-medium on one P800. Chosen by reckoning, not yet measured."""

# 1 rank x 128 x 2 = 256 samples a step, so that one chip trains the same task as eight and may reach the target.
train_batch_size = 128
gradient_accumulation_steps = 2
eval_batch_size = 128
