"""The digits: flat constants, a reason beside each."""

width = 16  # channels of the first convolution; the second has twice as many

target_accuracy = 0.92  # chance and always the same digit: 0.10; the nearest of ten mean images: 0.85
max_steps = 3_000
eval_interval_steps = 50
eval_batch_size = 360

train_batch_size = 64
learning_rate = 3e-3
lr_schedule = "constant"  # it ends when the target is met, not at a step
precision = "fp32"
