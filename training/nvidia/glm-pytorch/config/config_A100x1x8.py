"""GLM-large on one host with eight A100: the settings of FlagPerf's published result."""

precision = "fp32"  # published

train_batch_size = 8  # published: 8 ranks x 8 = 64 questions a step
gradient_accumulation_steps = 1  # published
eval_batch_size = 8  # published: that of training

learning_rate = 1e-5  # published
seed = 10483  # published
