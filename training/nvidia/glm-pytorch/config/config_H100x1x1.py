"""GLM-large on one H100. Chosen by reckoning, not yet measured."""

# 1 rank x 64 = 64 questions a step, so that one chip trains the same task as eight and may reach the target. A question
# has some 300 tokens of source and 30 of candidates, of which 0.4 GiB are kept for the backward pass (24 layers, about
# 50 bytes a hidden value): 26 GiB of 64, and the weights take 5 GiB with gradients and optimizer, of 80 GB.
train_batch_size = 64
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass
