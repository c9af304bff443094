"""CPM-1-medium on two hosts with eight S4000 each: the global batch published for sixteen A100, for throughput.

Not yet measured.
"""

precision = "bf16"

train_batch_size = 96  # 16 ranks x 96 x 2 = 3072 samples a step; about 26 GiB of 48
gradient_accumulation_steps = 2
eval_batch_size = 192

# As published for sixteen A100: the line of a run of 2,000 steps. The task's cap in samples ends after 1,430.
warmup_steps = 400
decay_steps = 2_400
