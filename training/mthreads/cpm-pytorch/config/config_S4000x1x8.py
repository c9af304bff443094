"""CPM-1-medium on one host with eight S4000. Chosen by reckoning, not yet measured."""

precision = "bf16"

train_batch_size = 32  # 8 ranks x 32 = 256 samples a step, for which the learning rate is published
eval_batch_size = 32
