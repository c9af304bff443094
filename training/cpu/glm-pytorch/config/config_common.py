"""The GLM demo: a small model on clozes from two English translations of one text, for two cores."""

# -- model: small enough for two cores --
vocab_size = 5002  # that of the demo's data: 5000 WordPieces, start and end of a piece
hidden_size = 128
num_layers = 2
num_attention_heads = 4
max_position_embeddings = 128
hidden_dropout = 0.0
attention_dropout = 0.0
init_checkpoint = ""  # random weights from the seed

# -- when it ends --
target_exact_match = 0.60
max_steps = 3_000
max_samples_termination = None

# -- evaluation --
eval_interval_samples = 6_400
eval_iter_start_samples = 0
eval_batch_size = 64

# -- optimizer --
learning_rate = 1e-3
weight_decay_rate = 0.0
warmup_steps = 200
decay_steps = 3_000
end_learning_rate_factor = 0.0
