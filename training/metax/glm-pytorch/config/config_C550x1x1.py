"""GLM-large on one C550, as on one A100: for throughput. Chosen by reckoning, not yet measured."""

precision = "bf16"

train_batch_size = 16  # a step has 16 questions
eval_batch_size = 16
