"""BERT-large on two hosts with eight S5000 each. Chosen by reckoning, not yet measured."""

precision = "bf16"

# 16 ranks x 48 x 2 = 1536 samples a step, as the published result on sixteen A100.
train_batch_size = 48  # about 29 GiB of 80; 23 more where attention keeps its scores
gradient_accumulation_steps = 2
eval_batch_size = 48

decay_steps = 20_000  # as published for sixteen A100
seed = 9031
