"""GLM-large on one host with eight BI-V150, of two devices each. Chosen by reckoning, not yet measured."""

precision = "fp16"

train_batch_size = 4  # 16 ranks x 4 = 64 questions a step, for which the rate is published
eval_batch_size = 8
