"""CPM-1-medium on two hosts with eight C500 each: the global batch and the rate of FlagPerf's folder, for throughput.

No embedding average stands there. (The file is called `config_C500x2x8py` there: nothing reads it.)
"""

precision = "fp16"  # FlagPerf's

# 16 ranks x 128 x 3 = 6144 samples a step; FlagPerf's 384 at once compute every layer twice, see config_C500x1x1.py.
train_batch_size = 128
gradient_accumulation_steps = 3
eval_batch_size = 384  # FlagPerf's; keeps nothing for a backward pass

learning_rate = 1e-3  # FlagPerf's
# The line of FlagPerf's run of 2,000 steps, a fifth of them warm-up. The task's cap in samples ends after 715.
warmup_steps = 400
decay_steps = 2_400
