"""BERT-large on one host with eight BI-V100: the settings of FlagPerf's folder."""

precision = "fp16"  # FlagPerf's, with loss scaling

# FlagPerf's: 8 ranks x 20 x 4 = 640 samples a step, at the rate published for 768.
train_batch_size = 20  # about 16 GiB of 32 here, 9 more where attention keeps its scores
eval_batch_size = 20  # FlagPerf's: that of training

seed = 9031  # FlagPerf's
