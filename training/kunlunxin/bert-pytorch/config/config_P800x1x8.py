"""BERT-large on one host with eight P800. Chosen by reckoning, not yet measured."""

# 8 ranks x 48 x 2 = 768 samples a step, as published for eight A100.
train_batch_size = 48
gradient_accumulation_steps = 2
eval_batch_size = 48

seed = 9031  # FlagPerf's, for A100 and R300 alike
