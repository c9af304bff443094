"""BERT-large on one A100, with the settings published for eight: for throughput. No result is published.

A step has 12 samples where the task's learning rate is meant for 96.
"""

train_batch_size = 12  # published for eight
eval_batch_size = 12

seed = 9031
