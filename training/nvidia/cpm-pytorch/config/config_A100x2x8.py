"""CPM-1-medium on two hosts with eight A100 each: the published global batch, for throughput.

No embedding average is published for it.
"""

precision = "fp16"  # published

# 16 ranks x 96 x 2 = 3072 samples a step. Published are 192 at once, with every layer computed twice (activation
# checkpointing). Here nothing is computed twice, and 192 at once would need about 44 GiB of 40; 96 need 26.
train_batch_size = 96
gradient_accumulation_steps = 2
eval_batch_size = 192  # published: that of training; keeps nothing for a backward pass

# Published: the line of a run of 2,000 steps, a fifth of them warm-up. The task's cap in samples ends after 1,430.
warmup_steps = 400
decay_steps = 2_400
