"""BERT-large on eight Max 1100, with the batch published for eight A100. Not measured."""

# 8 ranks x 16 x 6 = 768 samples a step. About 14 GiB of 48, about 32 where attention keeps its scores (README.md).
train_batch_size = 16
gradient_accumulation_steps = 6
eval_batch_size = 16  # needs less memory than a training step of as many samples

seed = 9031
