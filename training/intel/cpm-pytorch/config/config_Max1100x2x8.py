"""CPM-1-medium on two hosts, eight Max 1100 each, the global batch of sixteen A100. Not measured."""

# 16 ranks x 64 x 3 = 3072 samples a step. About 20 GiB of 48.
train_batch_size = 64
gradient_accumulation_steps = 3
eval_batch_size = 64  # keeps nothing for a backward pass

# Published for A100: the line of a run of 2,000 steps, a fifth of them warm-up. The cap in samples ends after 1,430.
warmup_steps = 400
decay_steps = 2_400
