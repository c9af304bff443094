"""The BERT demo on Paddle: the model, data, schedule and target of the PyTorch demo, for two cores.

The trivial baseline, always answering `,`, has an MLM accuracy of 0.07, and what the frequencies of words give
is 0.15; the target is only met by using the context.
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
initializer_range = 0.05  # at BERT's 0.02 so small a model stands at 0.15 for twice as many steps
pre_layer_norm = True  # after each part (post-LN) this model stays at the baseline at the rate below
gelu = "erf"  # the PyTorch demo's

# -- when it ends --
target_mlm_accuracy = 0.30  # four times the baseline, twice what no context gives
max_steps = 4_000
max_samples_termination = None

# -- evaluation --
eval_interval_samples = 12_800
eval_batch_size = 128

# -- optimizer --
learning_rate = 2e-3
warmup_steps = 100
decay_steps = 4_000

precision = "auto"  # Paddle has fp32 alone on a CPU
