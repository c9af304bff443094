"""BERT-large on one host with eight A100: the settings of FlagPerf's published result."""

# 8 ranks x 12 = 96 samples a step.
train_batch_size = 12
eval_batch_size = 12  # published: that of training

seed = 9031  # published
