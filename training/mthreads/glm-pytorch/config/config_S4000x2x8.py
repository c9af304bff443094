"""GLM-large on two hosts with eight S4000 each: for throughput. Chosen by reckoning, not yet measured."""

precision = "bf16"

train_batch_size = 8  # 16 ranks x 8 = 128 questions a step, as the published result on sixteen A100
eval_batch_size = 8
