"""BERT-large on two hosts with eight A100 each: the settings of FlagPerf's published result."""

precision = "fp16"  # "amp" in the published table: mixed precision with loss scaling

# 16 ranks x 24 x 4 = 1536 samples a step. 24 is what a board of 40 GB holds: 37.6 GiB are published.
train_batch_size = 24
eval_batch_size = 24  # published: that of training

decay_steps = 20_000  # published

seed = 9031  # published
