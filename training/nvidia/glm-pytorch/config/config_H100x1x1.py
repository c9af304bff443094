"""GLM-large on one H100. Chosen by reckoning, not yet measured."""

precision = "bf16"  # as fast as fp16 on Hopper, and its range needs no loss scaling

# 1 rank x 64 = 64 questions a step, so that one chip trains the same task as eight and may reach the target. A question
# has some 300 tokens of source and 30 of candidates, of which 0.4 GiB are kept for the backward pass (24 layers, about
# 50 bytes a hidden value): 26 GiB of 64, and the weights take 5 GiB with gradients and optimizer, of 80 GB.
train_batch_size = 64
gradient_accumulation_steps = 1
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass

learning_rate = 1e-5  # published for a global batch of 64
seed = 10483  # published
