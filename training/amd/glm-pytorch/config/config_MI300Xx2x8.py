"""GLM-large on two hosts with eight MI300X each. Chosen by reckoning, not yet measured."""

train_batch_size = 8  # 16 ranks x 8 = 128 questions a step, as published for sixteen A100
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass
