"""The CPM demo: a small model on the embedded classical verse, for two cores.

Untrained weights give an embedding average of 0.06; always answering with the commonest token, a comma, gives 0.26 with
their embedding, and 0.43 with the embedding of the model that meets the target.
"""

# -- model: small enough for two cores --
vocab_size = 8000  # that of the demo's data
hidden_size = 128
num_layers = 2
num_attention_heads = 2
max_position_embeddings = 64
hidden_dropout = 0.1
attention_dropout = 0.0
# Embeddings nearly at right angles to each other: with less, the first steps give them all one direction, and the
# embedding average is 0.8 and falling before anything is learnt (benchmarks/cpm/pytorch/README.md).
initializer_range = 0.15
init_checkpoint = ""  # random weights from the seed

# -- when it ends --
target_embedding_average = 0.63
max_steps = 3_000
max_samples_termination = None

# -- evaluation --
eval_interval_samples = 6_400
eval_batch_size = 128

# -- optimizer --
learning_rate = 2e-3
max_grad_norm = 1.0
warmup_steps = 100
decay_steps = 3_000

precision = "auto"  # bf16 where every rank's processor computes it natively, else fp32
