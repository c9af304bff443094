import os
from typing import Any

import torch


def init_dist_training_env(config: Any) -> None:
    torch.distributed.init_process_group(
        backend=config.dist_backend,
        init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )


def is_main_process() -> bool:
    return int(os.environ["LOCAL_RANK"]) == 0


def global_batch_size(config: Any) -> int:
    return config.train_batch_size * torch.distributed.get_world_size()
