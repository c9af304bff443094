"""CPM-1-medium on one A100, as published: for throughput. No embedding average is published for it."""

precision = "fp16"  # published

# Published, to fill a board of 40 GB (39.5 GiB are published). A step has 192 samples where eight boards take 256.
train_batch_size = 192
eval_batch_size = 192  # published: that of training
