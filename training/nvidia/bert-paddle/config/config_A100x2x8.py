"""BERT-large on two hosts with eight A100 each, with the settings published for one: for scaling over hosts.

No result is published. A step has 16 ranks x 12 = 192 samples, twice that of one host.
"""

train_batch_size = 12  # published for one host
eval_batch_size = 12

seed = 9031
