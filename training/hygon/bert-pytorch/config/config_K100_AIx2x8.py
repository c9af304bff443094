"""BERT-large on two hosts with eight K100_AI each, as published for sixteen A100. Not measured."""

precision = "fp16"  # as FlagPerf on K100; that K100_AI has units for bf16 stands in no document of Hygon's

# 16 ranks x 24 x 4 = 1536 samples a step and their schedule.
train_batch_size = 24
eval_batch_size = 24  # needs less memory than a training step of as many samples

decay_steps = 20_000

seed = 9031
