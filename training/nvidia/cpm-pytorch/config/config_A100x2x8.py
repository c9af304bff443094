"""CPM-1-medium on two hosts with eight A100 each, as published: for throughput. No embedding average is published."""

precision = "fp16"  # published

train_batch_size = 192  # published: 16 ranks x 192 = 3072 samples a step; 29.9 GiB are published
gradient_accumulation_steps = 1  # published
eval_batch_size = 192  # published: that of training

learning_rate = 5e-4  # published: that of one host, though a step has twelve times its samples
seed = 23333  # published
