"""GLM-large on two hosts with eight A100 each, as published: for throughput. No exact match is published for it."""

precision = "fp16"  # published: this configuration's file says so, the table beside it fp32

train_batch_size = 8  # published: 16 ranks x 8 = 128 questions a step
eval_batch_size = 8  # published: that of training
