"""GLM-large on two hosts with eight A100 each, as published: for throughput. No exact match is published for it."""

precision = "fp32"  # no other is published beside the figures, and a board is as fast in them as on one host

train_batch_size = 8  # published: 16 ranks x 8 = 128 questions a step
gradient_accumulation_steps = 1  # published
eval_batch_size = 8  # published: that of training

learning_rate = 1e-5  # published: that of one host, though a step has twice its questions
