"""BERT-large on one host with eight A100: the settings of FlagPerf's published result."""

precision = "fp32"  # published

# 8 ranks x 12 = 96 samples a step.
train_batch_size = 12
gradient_accumulation_steps = 1  # published
eval_batch_size = 12  # published: that of training

learning_rate = 1e-4  # published, for a global batch of 96
warmup_steps = 2_000  # published
seed = 9031  # published
