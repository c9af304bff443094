"""CPM-1-medium on one host with eight P800. Chosen by reckoning, not yet measured."""

train_batch_size = 32  # 8 ranks x 32 = 256 samples a step, as published for eight A100
eval_batch_size = 32
