"""GLM-large on two hosts with eight BW1000 each, as published for sixteen A100. Not measured."""

train_batch_size = 8  # 16 ranks x 8 = 128 questions a step
eval_batch_size = 8
