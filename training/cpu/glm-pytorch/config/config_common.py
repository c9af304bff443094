"""The GLM demo: a small model on clozes from two English translations of one text, for two cores.

A candidate drawn at random gives an exact match of 0.17, the best answer that needs no understanding 0.34.
"""

# -- model: small enough for two cores --
vocab_size = 2502  # that of the demo's data: 2500 WordPieces, start and end of a piece
hidden_size = 128
num_layers = 3
num_attention_heads = 8  # narrow heads find faster than four wide ones what to compare
max_position_embeddings = 128
hidden_dropout = 0.0
attention_dropout = 0.0
init_checkpoint = ""  # random weights from the seed
mimetic_initialization = True  # with normal weights nothing is learnt in so short a time

# -- when it ends --
target_exact_match = 0.60
max_steps = 6_000
max_samples_termination = None

# -- evaluation --
eval_interval_samples = 9_600
eval_iter_start_samples = 0
eval_batch_size = 128

# -- optimizer --
learning_rate = 5e-4  # higher ones undo what the initial weights bring
weight_decay_rate = 0.0
warmup_steps = 200
decay_steps = 8_000
end_learning_rate_factor = 0.0

precision = "auto"  # bf16 where every rank's processor computes it natively, else fp32
