"""GLM-large on two hosts with eight BI-V100 each, as in FlagPerf's folder: for throughput."""

precision = "fp16"  # FlagPerf's file says so, the table beside it fp32

train_batch_size = 8  # FlagPerf's: 16 ranks x 8 = 128 questions a step
eval_batch_size = 8  # FlagPerf's
