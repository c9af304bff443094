"""GLM-large on one host with four BI-V150, of two devices each. Chosen by reckoning, not yet measured."""

precision = "fp16"

train_batch_size = 8  # 8 ranks x 8 = 64 questions a step, for which the rate is published
eval_batch_size = 8
