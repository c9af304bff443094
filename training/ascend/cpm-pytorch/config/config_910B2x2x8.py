"""CPM-1-medium on two hosts with eight 910B2 each, for throughput. Chosen by reckoning, not yet measured."""

# 16 ranks x 96 x 2 = 3072 samples a step, and a line of 2,000 steps: as published for sixteen A100.
train_batch_size = 96
gradient_accumulation_steps = 2
eval_batch_size = 96

warmup_steps = 400
decay_steps = 2_400
