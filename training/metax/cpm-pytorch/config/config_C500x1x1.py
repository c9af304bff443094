"""CPM-1-medium on one C500: the global batch and the rate of FlagPerf's folder."""

precision = "fp16"  # FlagPerf's

# FlagPerf's: 384 at once, with every layer computed twice (activation checkpointing). Nothing is computed twice here,
# and 384 at once would need more than 64 GiB; 128 need about 32.
train_batch_size = 128
gradient_accumulation_steps = 3
eval_batch_size = 384  # FlagPerf's; keeps nothing for a backward pass

learning_rate = 7e-4  # FlagPerf's
