"""BERT-large on one host with eight H100. Chosen by reckoning, not yet measured."""

precision = "bf16"  # 15 times the peak of fp32, and its range needs no loss scaling

# The published 12 a rank leaves the chip idle between kernels; 48 do not, and fit into 80 GB.
# 8 ranks x 48 = 384 samples a step, four times the published 96.
train_batch_size = 48
eval_batch_size = 48  # needs less memory than a training step of as many samples

# For Adam the rate goes with the square root of the batch (Malladi et al. 2022, arXiv:2205.10287): 2 x 1e-4;
# the schedule keeps its length in samples: a quarter of the published 2000 and 10,000 steps, the last at the cap.
learning_rate = 2e-4
warmup_steps = 500
decay_steps = 2_500
seed = 9031  # published
