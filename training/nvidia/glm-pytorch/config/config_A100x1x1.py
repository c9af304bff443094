"""GLM-large on one A100, as published: for throughput. No exact match is published for it."""

precision = "fp16"  # what ran: see README.md; the table that was published says fp32

train_batch_size = 16  # published; a step has 16 questions where eight boards take 64
eval_batch_size = 16  # published: that of training
