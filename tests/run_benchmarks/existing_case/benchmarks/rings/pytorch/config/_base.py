from typing import ClassVar  # noqa: F401 - such files import what they do not use

vendor: str = None
name: str = "Rings"

data_dir: str = "/mnt/data/rings/"
hidden_size: int = 16
train_batch_size: int = 32
learning_rate: float = 0.01
max_steps: int = 2000
eval_interval: int = 50
target_accuracy: float = 0.95
dist_backend: str = "gloo"
finite_loss = True
seed: int = 7
local_rank: int = -1
use_env: bool = True
