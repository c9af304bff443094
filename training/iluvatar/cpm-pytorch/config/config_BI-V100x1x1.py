"""CPM-1-medium on one BI-V100: the batch of FlagPerf's table for it, for throughput."""

precision = "fp16"  # FlagPerf's

# FlagPerf's table: 192 at once, with every layer computed twice (activation checkpointing). Nothing is computed twice
# here, and 192 at once would need about 44 GiB of 32; 64 need 20. (The file beside the table says 32.)
train_batch_size = 64
gradient_accumulation_steps = 3
eval_batch_size = 192  # keeps nothing for a backward pass
