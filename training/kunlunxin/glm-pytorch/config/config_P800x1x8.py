"""GLM-large on one host with eight P800. Chosen by reckoning, not yet measured."""

train_batch_size = 8  # 8 ranks x 8 = 64 questions a step, as published for eight A100
eval_batch_size = 8
