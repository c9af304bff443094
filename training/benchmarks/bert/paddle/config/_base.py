"""BERT-large pre-training as FlagPerf defines it for Paddle: flat constants, a reason beside each.

A vendor's file may override any of them; `mutable_params.py` lists those that leave the task the same.
"""

# -- model: bert-large-uncased (bert_config.json of its authors) --
vocab_size = 30528  # WordPiece, lower case: 30522, padded to a multiple of 8 for the matrix units
hidden_size = 1024
num_hidden_layers = 24
num_attention_heads = 16
intermediate_size = 4096
max_position_embeddings = 512
type_vocab_size = 2  # sentence A, sentence B
hidden_dropout_prob = 0.1
attention_probs_dropout_prob = 0.1
layer_norm_eps = 1e-12
initializer_range = 0.02
pre_layer_norm = False  # BERT normalises after each part
gelu = "tanh"  # the approximation with which the initial checkpoint was trained; "erf" is the exact form
init_checkpoint = "model.ckpt-28252.safetensors"  # of the data directory, converted; "" for random weights
# MLM accuracy before training, of the checkpoints for which it is published: MLPerf's check value
checkpoint_mlm_accuracy = {"model.ckpt-28252.safetensors": 0.34085}
# of it: room for rounding in 16 bits; random weights have 0.00, a model that is trained to the target has 0.7
checkpoint_tolerance = 0.01

# -- when it ends --
target_mlm_accuracy = 0.67  # FlagPerf's target for Paddle, from the checkpoint at step 28252
# The published 10,000 steps of 96, after which the rate is 0; in samples, so that it is the same for every size
max_samples_termination = 960_000

# -- evaluation --
# MLPerf's rule, floor(0.05 (230.23 x global batch + 3,000,000) / 25,000) x 25,000: so for every global batch below 2172
eval_interval_samples = 150_000
eval_batch_size = 12
init_evaluation = True  # the checkpoint's accuracy shows that it was loaded right
log_freq = 20

# -- batch: 8 ranks x 12 = 96 samples a step --
train_batch_size = 12
gradient_accumulation_steps = 1

# -- optimizer --
optimizer = "adamw"
learning_rate = 1e-4  # published for a global batch of 96
weight_decay_rate = 0.01
beta_1 = 0.9
beta_2 = 0.999
epsilon = 1e-6
max_grad_norm = 1.0  # MLPerf's rule, and as on PyTorch; FlagPerf's code for Paddle does not clip
lr_schedule = "linear"
warmup_steps = 2_000  # published
decay_steps = 10_000  # published, to 0 there

# -- how it is computed --
precision = "fp32"
seed = 42
