"""BERT-large on one host with eight BW1000, as published for eight A100. Not measured."""

# 8 ranks x 24 x 4 = 768 samples a step. About 18 GiB of 64, about 43 where attention keeps its scores (README.md).
train_batch_size = 24
eval_batch_size = 24  # needs less memory than a training step of as many samples

seed = 9031
