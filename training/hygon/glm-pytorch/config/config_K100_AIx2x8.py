"""GLM-large on two hosts with eight K100_AI each, as published for sixteen A100. Not measured."""

precision = "fp16"  # as FlagPerf on K100; that K100_AI has units for bf16 stands in no document of Hygon's

train_batch_size = 8  # 16 ranks x 8 = 128 questions a step
eval_batch_size = 8
