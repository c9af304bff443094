"""What a vendor may change of a training case without changing its task: what makes a chip fast, and what follows."""

mutable_params = [
    "train_batch_size",
    "gradient_accumulation_steps",
    "eval_batch_size",
    "precision",
    "torch_compile",
    "cpu_threads",
    "prefetch_batches",
    "log_freq",
    "dist_timeout_seconds",
    # a larger or smaller global batch needs another rate
    "learning_rate",
    "warmup_steps",
    "decay_steps",
    "seed",
    "seed_step",
]
