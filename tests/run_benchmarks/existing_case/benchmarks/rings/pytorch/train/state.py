"""What is known of the training so far."""

from dataclasses import dataclass
from typing import Any


@dataclass
class TrainingState:
    """Times in seconds."""

    global_steps: int = 0
    loss: float = 0.0
    accuracy: float = 0.0
    converged: bool = False
    init_time: float = 0.0
    raw_train_time: float = 0.0
    logger: Any = None

    def step_info(self, config: Any, world_size: int) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "epoch": 0,
            "end_training": self.converged,
            "global_steps": self.global_steps,
            "num_trained_samples": self.global_steps * config.train_batch_size * world_size,
            "learning_rate": config.learning_rate,
        }
