"""GLM-large on one MI300X. Chosen by reckoning, not yet measured."""

# 1 rank x 64 = 64 questions a step, so that one chip trains the same task as eight and may reach the target. About
# 47 GiB of 192 where every question has 512 tokens, and about 120 where attention keeps its scores.
train_batch_size = 64
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass
