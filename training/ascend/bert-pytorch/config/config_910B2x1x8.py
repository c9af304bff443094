"""BERT-large on one host with eight 910B2. Chosen by reckoning, not yet measured."""

# 8 ranks x 32 x 3 = 768 samples a step, as published for eight A100. FlagPerf's bert_hf ran 32 in bf16 on this memory.
train_batch_size = 32
gradient_accumulation_steps = 3
eval_batch_size = 32

seed = 9031  # that of the results published for A100
