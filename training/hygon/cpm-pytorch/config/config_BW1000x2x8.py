"""CPM-1-medium on two hosts with eight BW1000 each: the global batch published for sixteen A100. Not measured."""

# 16 ranks x 96 x 2 = 3072 samples a step. About 26 GiB of 64.
train_batch_size = 96
gradient_accumulation_steps = 2
eval_batch_size = 96  # keeps nothing for a backward pass

# Published for A100: the line of a run of 2,000 steps, a fifth of them warm-up. The cap in samples ends after 1,430.
warmup_steps = 400
decay_steps = 2_400
