"""GLM-large on one H100. Chosen by reckoning, not yet measured."""

# 1 rank x 64 = 64 questions a step, so that one chip trains the same task as eight and may reach the target. About
# 47 GiB of 79.6 where every question has 512 tokens; ReCoRD's have some 300.
train_batch_size = 64
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass
