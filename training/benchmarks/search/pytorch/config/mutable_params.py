"""What a vendor may change without changing the task: what makes a chip fast, and how long is searched."""

mutable_params = [
    "search_seconds",
    "batch_sizes",
    "eval_batch_size",
    "precision",
    "learning_rate",
    "ranks_per_worker",
]
mutable_params += [
    "prefetch_batches",
    "cpu_threads",
    "dist_timeout_seconds",
    "heartbeat_seconds",
    "lost_after_seconds",
]
mutable_params += ["seed"]
