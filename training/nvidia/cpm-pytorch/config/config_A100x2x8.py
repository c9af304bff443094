"""CPM-1-medium on two hosts with eight A100 each, as published: for throughput. No embedding average is published."""

precision = "fp16"  # published

train_batch_size = 192  # published: 16 ranks x 192 = 3072 samples a step; 29.9 GiB are published
eval_batch_size = 192  # published: that of training
