"""CPM-1-medium on one host with eight A100: the settings of FlagPerf's published result."""

precision = "fp16"  # published

train_batch_size = 32  # published: 8 ranks x 32 = 256 samples a step; 12.9 GiB are published
eval_batch_size = 32  # published: that of training
