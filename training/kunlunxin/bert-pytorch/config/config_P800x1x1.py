"""BERT-large on one P800. Chosen by reckoning, not yet measured."""

# 1 rank x 48 x 16 = 768 samples a step, so that one chip trains the same task as eight and may reach the target.
train_batch_size = 48
gradient_accumulation_steps = 16
eval_batch_size = 48

seed = 9031  # FlagPerf's, for A100 and R300 alike
