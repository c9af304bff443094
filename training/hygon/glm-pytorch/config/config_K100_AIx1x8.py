"""GLM-large on one host with eight K100_AI, with FlagPerf's batch for eight K100. Not measured."""

precision = "fp16"  # as FlagPerf on K100; that K100_AI has units for bf16 stands in no document of Hygon's

train_batch_size = 8  # FlagPerf's: 8 ranks x 8 = 64 questions a step
eval_batch_size = 8
