"""GLM-large on two hosts with eight A100 each, as published: for throughput. No exact match is published for it."""

precision = "fp32"  # no other is published beside the figures, and a board is as fast in them as on one host

train_batch_size = 8  # published: 16 ranks x 8 = 128 questions a step
eval_batch_size = 8  # published: that of training
