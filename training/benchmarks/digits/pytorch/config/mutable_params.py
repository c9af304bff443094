"""What a vendor may change without changing the task."""

mutable_params = ["train_batch_size", "learning_rate", "precision", "torch_compile", "seed", "seed_step"]
