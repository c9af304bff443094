"""GLM-large on two hosts with eight C500 each: the batch and the rate of FlagPerf's folder."""

precision = "fp16"  # FlagPerf's file says so, the table beside it fp32

train_batch_size = 16  # FlagPerf's: 16 ranks x 16 = 256 questions a step
eval_batch_size = 16  # FlagPerf's

learning_rate = 2e-5  # FlagPerf's
