"""GLM-large on one host with eight H200. Chosen by reckoning, not yet measured."""

precision = "bf16"  # as fast as fp16 on Hopper, and its range needs no loss scaling

# 8 ranks x 8 = 64 questions a step, as published for eight A100. The memory would hold many more, but the published
# learning rate is for 64, and the one published result with 128 needed as long to the target.
train_batch_size = 8
gradient_accumulation_steps = 1
eval_batch_size = 64  # all candidates of a question, but nothing kept for a backward pass

learning_rate = 1e-5  # published for a global batch of 64
seed = 10483  # published
