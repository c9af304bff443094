"""The BERT demo on Paddle: the model, data and target of the PyTorch demo, on two cores.

Always answering with the commonest token gives an MLM accuracy of 0.07; the target is far above it.
"""

# -- model: small enough for two cores --
vocab_size = 2000  # that of the demo's data
hidden_size = 128
num_hidden_layers = 2
num_attention_heads = 2
intermediate_size = 512
max_position_embeddings = 64
hidden_dropout_prob = 0.0  # in one or two epochs nothing is learnt by heart
attention_probs_dropout_prob = 0.0
init_checkpoint = ""  # random weights from the seed
pre_layer_norm = True  # after each part (post-LN) this model stays at the baseline at the rate below

# -- when it ends --
target_mlm_accuracy = 0.25
max_steps = 6_000
max_samples_termination = None

# -- evaluation --
eval_interval_samples = 12_800
eval_iter_start_samples = 0
eval_batch_size = 128

# -- optimizer --
learning_rate = 2e-3
warmup_steps = 100
decay_steps = 6_000

precision = "fp32"  # Paddle has no bf16 on a CPU
