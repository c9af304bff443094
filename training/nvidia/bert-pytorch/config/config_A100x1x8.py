"""BERT-large on one host with eight A100: the settings of FlagPerf's published result."""

precision = "fp16"  # "amp" in the published table: mixed precision with loss scaling

# 8 ranks x 24 x 4 = 768 samples a step. 24 is what a board of 40 GB holds: 35.4 GiB are published.
train_batch_size = 24
eval_batch_size = 24  # published: that of training

seed = 9031  # published
