"""BERT-large on one host with eight S4000. Chosen by reckoning, not yet measured."""

precision = "bf16"

# 8 ranks x 24 x 4 = 768 samples a step, for which the learning rate and its decay are published.
train_batch_size = 24  # about 18 GiB of 48; 12 more where attention keeps its scores
gradient_accumulation_steps = 4
eval_batch_size = 24

seed = 9031
