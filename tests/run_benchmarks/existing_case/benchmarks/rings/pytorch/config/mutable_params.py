mutable_params = ["train_batch_size", "learning_rate", "dist_backend", "vendor"]

mutable_params += ["local_rank", "data_dir"]
