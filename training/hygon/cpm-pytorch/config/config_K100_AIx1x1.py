"""CPM-1-medium on one K100_AI: the global batch published for one A100, for throughput. Not measured."""

precision = "fp16"  # as FlagPerf on K100; that K100_AI has units for bf16 stands in no document of Hygon's

# About 26 GiB of 64. A step has 1 rank x 96 x 2 = 192 samples where eight cards take 256.
train_batch_size = 96
gradient_accumulation_steps = 2
eval_batch_size = 96  # keeps nothing for a backward pass
