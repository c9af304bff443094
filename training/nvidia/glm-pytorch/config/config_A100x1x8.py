"""GLM-large on one host with eight A100: the settings of FlagPerf's published result."""

precision = "fp16"  # what ran: see README.md; the table that was published says fp32

train_batch_size = 8  # published: 8 ranks x 8 = 64 questions a step
eval_batch_size = 8  # published: that of training
