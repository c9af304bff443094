"""CPM-1-medium on two hosts with eight BI-V100 each: the global batch of FlagPerf's folder, for throughput.

No embedding average stands there.
"""

precision = "fp16"  # FlagPerf's

# 16 ranks x 64 x 2 = 2048 samples a step; FlagPerf's 128 at once compute every layer twice, see config_BI-V100x1x1.py.
train_batch_size = 64
gradient_accumulation_steps = 2
eval_batch_size = 128  # FlagPerf's; keeps nothing for a backward pass

# The line of FlagPerf's run of 2,000 steps, a fifth of them warm-up. The task's cap in samples ends after 2,144.
warmup_steps = 400
decay_steps = 2_400
