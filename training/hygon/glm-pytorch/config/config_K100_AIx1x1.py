"""GLM-large on one K100_AI, with FlagPerf's batch for one K100: for throughput. Not measured."""

precision = "fp16"  # as FlagPerf on K100; that K100_AI has units for bf16 stands in no document of Hygon's

train_batch_size = 16  # FlagPerf's; a step has 16 questions where eight cards take 64
eval_batch_size = 16  # FlagPerf's
