"""BERT-large on two hosts with eight 910B2 each. Chosen by reckoning, not yet measured."""

# 16 ranks x 32 x 3 = 1536 samples a step, as published for sixteen A100.
train_batch_size = 32
gradient_accumulation_steps = 3
eval_batch_size = 32

decay_steps = 20_000  # published with that batch

seed = 9031  # that of the results published for A100
