"""CPM-1-medium, trained further as FlagPerf defines it: flat constants, a reason beside each.

A vendor's file may override any of them; `mutable_params.py` lists those that leave the task the same.
"""

# -- model: CPM-1-medium (0.33 G parameters) --
vocab_size = 30000  # SentencePiece pieces, <eod> among them
hidden_size = 1024
num_layers = 24
num_attention_heads = 16
max_position_embeddings = 1024  # of the checkpoint; a sample uses the first 200
hidden_dropout = 0.5  # FlagPerf's: the text is passed over many times
attention_dropout = 0.5
layernorm_epsilon = 1e-5
initializer_range = 0.02
# Of the data directory, converted (benchmarks.cpm.prepare): where the task begins; "" for random weights.
init_checkpoint = "cpm_model_states_medium.safetensors"

# -- when it ends --
target_embedding_average = 0.92  # FlagPerf's
max_steps = 4_000
max_samples_termination = 4_391_260

# -- evaluation --
eval_interval_samples = 20_000
eval_batch_size = 32
init_evaluation = True  # the checkpoint's loss shows that it was loaded right
log_freq = 20

# -- batch: 8 ranks x 32 = 256 samples a step --
train_batch_size = 32
gradient_accumulation_steps = 1

# -- optimizer: Adam with decoupled weight decay, not of biases and normalisation --
optimizer = "adamw"
learning_rate = 5e-4  # published for a global batch of 256
weight_decay_rate = 0.05
beta_1 = 0.9
beta_2 = 0.999  # FlagPerf's configuration says 0.99, but its optimizer is made without it: this is what ran
epsilon = 1e-8
max_grad_norm = None  # FlagPerf does not clip here
lr_schedule = "linear"
warmup_steps = 800  # 20 % of max_steps
decay_steps = (
    4_800  # FlagPerf's line falls by 1/4000 of the peak a step from the warm-up's end: to 0.2 at max_steps
)

# -- how it is computed --
precision = "bf16"
seed = 23333  # FlagPerf's
