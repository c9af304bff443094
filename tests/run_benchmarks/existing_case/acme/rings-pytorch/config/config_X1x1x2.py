from config_common import *  # noqa: F403

train_batch_size = 16
learning_rate = 0.02
