"""CPM-1-medium on two hosts with eight MI300X each: the global batch published for sixteen A100, for throughput.

No embedding average is published for it.
"""

# 16 ranks x 192 = 3072 samples a step. About 44 GiB of 192.
train_batch_size = 192
eval_batch_size = 192  # keeps nothing for a backward pass

# Published for A100: the line of a run of 2,000 steps, a fifth of them warm-up. The cap in samples ends after 1,430.
warmup_steps = 400
decay_steps = 2_400
