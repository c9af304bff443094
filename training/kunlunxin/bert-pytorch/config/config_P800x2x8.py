"""BERT-large on two hosts with eight P800 each. Chosen by reckoning, not yet measured."""

# 16 ranks x 48 x 2 = 1536 samples a step, as published for sixteen A100.
train_batch_size = 48
gradient_accumulation_steps = 2
eval_batch_size = 48

decay_steps = 20_000  # published with that batch

seed = 9031  # FlagPerf's, for A100 and R300 alike
