"""BERT-large on one A100, with the settings published for eight: for throughput. No result is published.

A step has 12 samples where the task's learning rate is meant for 96.
"""

precision = "fp32"  # published for eight

train_batch_size = 12  # published for eight
gradient_accumulation_steps = 1
eval_batch_size = 12

learning_rate = 1e-4  # published for eight
warmup_steps = 2_000
seed = 9031
