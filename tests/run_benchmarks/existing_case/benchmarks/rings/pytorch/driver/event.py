from enum import Enum, auto


class Event(Enum):
    INIT_START = auto()
    INIT_EVALUATION = auto()
    INIT_END = auto()
    TRAIN_START = auto()
    EPOCH_BEGIN = auto()
    STEP_END = auto()
    EVALUATE = auto()
    EPOCH_END = auto()
    TRAIN_END = auto()
    FINISHED = auto()
