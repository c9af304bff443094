"""BERT-large on two hosts with eight BI-V100 each: the settings of FlagPerf's folder."""

precision = "fp16"  # FlagPerf's, with loss scaling

# FlagPerf's: 16 ranks x 20 x 4 = 1280 samples a step, at the rate published for 768.
train_batch_size = 20  # about 16 GiB of 32 here, 9 more where attention keeps its scores
eval_batch_size = 20  # FlagPerf's: that of training

decay_steps = 20_000  # FlagPerf's
seed = 9031  # FlagPerf's
