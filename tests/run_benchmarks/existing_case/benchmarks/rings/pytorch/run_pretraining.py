"""Which of two rings is a point on? A training script that is started by the launch contract and nothing else."""

import argparse
import os
import sys
import time
from pathlib import Path

HERE = os.path.abspath(os.path.dirname(__file__))  # noqa: PTH100, PTH120
sys.path.append(os.path.abspath(os.path.join(HERE, "../../")))  # noqa: PTH100, PTH118

import config  # noqa: E402
import torch  # noqa: E402
from config import mutable_params  # noqa: E402
from driver import Driver, Event, dist_pytorch  # noqa: E402
from torch import nn  # noqa: E402
from train.state import TrainingState  # noqa: E402


def read_points(data_dir: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, 2) float32 and (n,) labels of `points.txt`: x, y and label in a line."""
    rows = [
        [float(word) for word in line.split()]
        for line in Path(data_dir, "points.txt").read_text().splitlines()
    ]
    table = torch.tensor(rows)
    return table[:, :2], table[:, 2].long()


def evaluate(model: nn.Module, points: torch.Tensor, labels: torch.Tensor) -> float:
    with torch.no_grad():
        return float((model(points).argmax(dim=1) == labels).float().mean())


def main() -> TrainingState:
    driver = Driver(config, mutable_params)
    driver.setup_config(argparse.ArgumentParser("Rings"))
    dist_pytorch.init_dist_training_env(config)
    state = TrainingState()
    driver.event(Event.INIT_START)
    init_start = driver.logger.previous_log_time
    torch.manual_seed(config.seed)
    points, labels = read_points(config.data_dir)
    train, held_out = slice(None, -200), slice(-200, None)
    net = nn.Sequential(nn.Linear(2, config.hidden_size), nn.Tanh(), nn.Linear(config.hidden_size, 2))
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    driver.event(Event.INIT_EVALUATION, {"eval_accuracy": evaluate(net, points[held_out], labels[held_out])})
    driver.event(Event.INIT_END, "ready")  # a text, as some loggers write it
    state.init_time = (driver.logger.previous_log_time - init_start) / 1e3

    driver.event(Event.TRAIN_START)
    train_start = driver.logger.previous_log_time
    rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    points_here, labels_here = points[train][rank::world_size], labels[train][rank::world_size]
    generator = torch.Generator().manual_seed(config.seed + rank)
    driver.event(Event.EPOCH_BEGIN, {"epoch": 0})
    while state.global_steps < config.max_steps and not state.converged:
        rows = torch.randint(len(points_here), (config.train_batch_size,), generator=generator)
        loss = nn.functional.cross_entropy(model(points_here[rows]), labels_here[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.global_steps += 1
        state.loss = float(loss.detach())
        if state.global_steps % config.eval_interval == 0:
            print(
                f"\rstep {state.global_steps}", end="", file=sys.stderr, flush=True
            )  # a progress bar's open line
            driver.event(Event.STEP_END, state.step_info(config, world_size))
            state.accuracy = evaluate(net, points[held_out], labels[held_out])
            state.converged = state.accuracy >= config.target_accuracy
            driver.event(Event.EVALUATE, {"eval_accuracy": state.accuracy})
    driver.event(Event.EPOCH_END, {"epoch": 0})
    driver.event(Event.TRAIN_END)
    state.raw_train_time = max(driver.logger.previous_log_time - train_start, 1) / 1e3
    state.logger = driver.logger
    return state


if __name__ == "__main__":
    begin = time.time()
    state = main()
    torch.distributed.barrier()
    if dist_pytorch.is_main_process():
        finished = {
            "e2e_time": time.time() - begin,
            "training_sequences_per_second": dist_pytorch.global_batch_size(config)
            * state.global_steps
            / state.raw_train_time,
            "converged": state.converged,
            "final_loss": state.loss if config.finite_loss else float("nan"),
            "final_accuracy": state.accuracy,
            "raw_train_time": state.raw_train_time,
            "init_time": state.init_time,
        }
        state.logger.log(Event.FINISHED, finished)
    torch.distributed.destroy_process_group()
    sys.stderr.flush()
    os._exit(0)  # gloo's threads may abort an interpreter that shuts down
