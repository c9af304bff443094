"""BERT-large on two hosts with eight A100 each, with the settings published for one: for scaling over hosts.

No result is published. A step has 16 ranks x 12 = 192 samples, twice that of one host.
"""

precision = "fp32"  # published for one host

train_batch_size = 12  # published for one host
gradient_accumulation_steps = 1
eval_batch_size = 12

learning_rate = 1e-4  # published: that of one host, though a step has twice its samples
warmup_steps = 2_000
seed = 9031
