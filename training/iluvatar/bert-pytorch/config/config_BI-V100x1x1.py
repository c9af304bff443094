"""BERT-large on one BI-V100: the settings of FlagPerf's folder, for throughput.

A step has 1 rank x 20 x 4 = 80 samples where the task's learning rate is meant for 768.
"""

precision = "fp16"  # FlagPerf's, with loss scaling

train_batch_size = 20  # FlagPerf's; about 16 GiB of 32 here, 9 more where attention keeps its scores
gradient_accumulation_steps = 4  # FlagPerf's
eval_batch_size = 20  # FlagPerf's: that of training

decay_steps = 240_000  # FlagPerf's
seed = 9031  # FlagPerf's
