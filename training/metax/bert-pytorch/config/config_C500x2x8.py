"""BERT-large on two hosts with eight C500 each. Chosen by reckoning, not yet measured."""

precision = "bf16"

# 16 ranks x 32 x 3 = 1536 samples a step, as the published result on sixteen A100.
train_batch_size = 32  # about 22 GiB of 64; 15 more where attention keeps its scores
gradient_accumulation_steps = 3
eval_batch_size = 32

decay_steps = 20_000  # as published for sixteen A100
seed = 9031
