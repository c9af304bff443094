"""BERT-large on two hosts with eight A100 each, with FlagPerf's settings for them: for scaling over hosts.

No result is published. A step has 16 ranks x 12 = 192 samples, twice that of one host, at the same rate and for
as many steps; the cap in samples is met after half of them.
"""

train_batch_size = 12  # published
eval_batch_size = 12  # published: that of training

seed = 9031  # published
