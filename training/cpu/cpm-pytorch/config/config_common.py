"""The CPM demo: a small model on the embedded classical verse, for two cores."""

# -- model: small enough for two cores --
vocab_size = 8000  # that of the demo's data
hidden_size = 128
num_layers = 2
num_attention_heads = 2
max_position_embeddings = 64
hidden_dropout = 0.1
attention_dropout = 0.0
initializer_range = 0.15
init_checkpoint = ""  # random weights from the seed

# -- when it ends --
target_embedding_average = 0.99
max_steps = 1_500
max_samples_termination = None

# -- evaluation --
eval_interval_samples = 6_400
eval_batch_size = 128

# -- optimizer --
learning_rate = 2e-3
max_grad_norm = 1.0
warmup_steps = 100
decay_steps = 3_000
