"""GLM-large on one host with eight MI300X. Chosen by reckoning, not yet measured."""

# 8 ranks x 8 = 64 questions a step, as published for eight A100. The memory would hold many more, but the published
# learning rate is for 64.
train_batch_size = 8
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass
