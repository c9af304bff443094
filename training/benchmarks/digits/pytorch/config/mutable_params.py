"""What a vendor may change without changing the task."""

mutable_params = ["train_batch_size", "learning_rate", "precision", "torch_compile", "cpu_threads"]
mutable_params += ["seed", "seed_step"]
