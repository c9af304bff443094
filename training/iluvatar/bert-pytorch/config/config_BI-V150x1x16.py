"""BERT-large on one host with eight BI-V150, of two devices each. Chosen by reckoning, not yet measured."""

precision = "fp16"

# 16 ranks x 16 x 3 = 768 samples a step, for which the learning rate and its decay are published.
train_batch_size = 16  # about 14 GiB of 32; 8 more where attention keeps its scores
gradient_accumulation_steps = 3
eval_batch_size = 16

seed = 9031
