"""CPM-1-medium on one host with eight K100_AI, as published for eight A100. Not measured."""

precision = "fp16"  # as FlagPerf on K100; that K100_AI has units for bf16 stands in no document of Hygon's

train_batch_size = 32  # 8 ranks x 32 = 256 samples a step; about 13 GiB of 64
eval_batch_size = 32
