"""BERT-large on two hosts with eight S4000 each. Chosen by reckoning, not yet measured."""

precision = "bf16"

# 16 ranks x 24 x 4 = 1536 samples a step, as the published result on sixteen A100.
train_batch_size = 24  # about 18 GiB of 48; 12 more where attention keeps its scores
gradient_accumulation_steps = 4
eval_batch_size = 24

decay_steps = 20_000  # as published for sixteen A100
seed = 9031
