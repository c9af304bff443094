"""GLM-large on two hosts with eight 910B2 each, for throughput. Chosen by reckoning, not yet measured."""

train_batch_size = 8  # 16 ranks x 8 = 128 questions a step, as published for sixteen A100
eval_batch_size = 8
