"""BERT-large on one host with eight C550. Chosen by reckoning, not yet measured."""

precision = "bf16"

# 8 ranks x 32 x 3 = 768 samples a step, for which the learning rate and its decay are published.
train_batch_size = 32  # about 22 GiB of 64; 15 more where attention keeps its scores
gradient_accumulation_steps = 3
eval_batch_size = 32

seed = 9031
