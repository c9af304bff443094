"""BERT-large on one host with eight S5000. Chosen by reckoning, not yet measured."""

precision = "bf16"

# 8 ranks x 48 x 2 = 768 samples a step, for which the learning rate and its decay are published.
train_batch_size = 48  # about 29 GiB of 80; 23 more where attention keeps its scores
gradient_accumulation_steps = 2
eval_batch_size = 48

seed = 9031
