"""GLM-large on ReCoRD, fine-tuned as FlagPerf defines it: flat constants, a reason beside each.

A vendor's file may override any of them; `mutable_params.py` lists those that leave the task the same.
"""

# -- model: GLM-large (0.34 G parameters) --
vocab_size = 30592  # bert-large-uncased's 30,522, start and end of a piece, padded to a multiple of 128
hidden_size = 1024
num_layers = 24
num_attention_heads = 16
max_position_embeddings = 512  # source and candidate together
hidden_dropout = 0.1
attention_dropout = 0.1
layernorm_epsilon = 1e-5
initializer_range = 0.02
mimetic_initialization = False  # for small models that begin with random weights
# Of the data directory, converted (benchmarks.glm.prepare); "" for random weights.
init_checkpoint = "blocklm-large-blank/200000/mp_rank_00_model_states.safetensors"

# -- when it ends --
target_exact_match = 0.80  # FlagPerf's
max_steps = None
max_samples_termination = 5_553_080  # FlagPerf's: forty epochs

# -- evaluation --
eval_interval_samples = 19_200  # FlagPerf's: 600 steps of 4 x 8
eval_iter_start_samples = 100
eval_batch_size = 8
init_evaluation = True  # the checkpoint's exact match shows that it was loaded right
log_freq = 20

# -- batch: 8 ranks x 8 = 64 questions a step --
train_batch_size = 8
gradient_accumulation_steps = 1

# -- optimizer: Adam with decoupled weight decay, not of biases and normalisation --
optimizer = "adamw"
learning_rate = 1e-5  # published for a global batch of 64
weight_decay_rate = 0.1
beta_1 = 0.9
beta_2 = 0.999
epsilon = 1e-8
max_grad_norm = 1.0
lr_schedule = "linear"
warmup_steps = 433  # 10 % of decay_steps
decay_steps = 4_338  # two epochs of 138,827 questions at 64 a step
end_learning_rate_factor = 0.1

# -- how it is computed --
precision = "bf16"
seed = 10483  # FlagPerf's
