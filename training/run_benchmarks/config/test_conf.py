"""The benchmarks: whose chips, which cases, and how they are set up on the hosts.

Beside this file may lie machine_conf.py, which quickstart.sh writes: what this machine needs. It says RUNTIME,
CONTAINER_ENGINE, PROCESS_PYTHON, the PIP_ settings and VENDORS where this file leaves them open.
"""

from pathlib import Path as _Path

# ---- The chips ---------------------------------------------------------------------------------------

# The vendor of the chips: the name of a folder in training/ with a vendor.py, e.g. "cpu" or "nvidia".
VENDOR = "cpu"

# Options for the container engine that give a container the chips. None takes the vendor's own, e.g.
#   nvidia     " --gpus all"
#   iluvatar   " -v /lib/modules:/lib/modules "
#   kunlunxin  " --device=/dev/xpu0 --device=/dev/xpu1 --device=/dev/xpuctrl"
#   metax      " --device=/dev/dri --device=/dev/mxcd --group-add video"
ACCE_CONTAINER_OPT = None

# The variable that tells a process which chips it may use, e.g. "CUDA_VISIBLE_DEVICES". None takes the
# vendor's own.
ACCE_VISIBLE_DEVICE_ENV_NAME = None

# The two settings above and IMAGE_BUILD_ARGS are of VENDOR. For cases of other vendors, e.g.
# VENDORS = {"acme": {"ACCE_CONTAINER_OPT": " --device=/dev/acme"}}
VENDORS: dict[str, dict[str, object]] = {}

# ---- The cases ---------------------------------------------------------------------------------------

# "default" takes the cases of training/benchmarks, "customized" those of training/<vendor>/benchmarks.
TEST_TYPE = "default"

# Where quickstart.sh puts the data of the demo: beside training/, so that it is not sent to the hosts.
_DEMO_DATA = _Path(__file__).parent.joinpath("../../../.quickstart/bert_demo").resolve()

# What to run: "model:framework[_version]:chip:nnodes:nproc:repeat" -> data directory on every host.
# `nnodes` is the number of hosts, `nproc` the processes on each, `repeat` the number of rounds; the
# parameters are those of training/<vendor>/<model>-<framework>/config/config_<chip>x<nnodes>x<nproc>.py.
CASES = {
    "bert:pytorch:cpu:1:2:1": str(_DEMO_DATA),
    # "bert:pytorch:A100:1:8:1": "/data/bert/train",
    # "acme/bert:pytorch:A1:1:8:1": "/data/bert/train",  # of another vendor than VENDOR
}

# The same in FlagPerf's earlier form, which is read as well: names, and a dict for each name.
# CASES = ["BERT_TORCH_DEMO_CPU_1X2"]
# BERT_TORCH_DEMO_CPU_1X2 = {
#     "model": "bert",
#     "framework": "pytorch",
#     "config": "config_cpux1x2",
#     "repeat": 1,
#     "nnodes": 1,
#     "nproc": 2,
#     "data_dir_host": "/data/bert_demo",
#     "data_dir_container": "/mnt/data/bert_demo",
#     # "deadline_hours": 2,   # optional: another deadline than CASE_DEADLINE_HOURS
#     # "vendor": "acme",      # optional: another vendor than VENDOR
# }

# ---- Paths and logs ----------------------------------------------------------------------------------

# Where training/ lies on the hosts (it is brought there by itself) and in the containers. None is, on
# the hosts, the folder that this checkout has on this machine. To give host and container a path each,
# set FLAGPERF_PATH_HOST and FLAGPERF_PATH_CONTAINER instead.
FLAGPERF_PATH = None

# Where results and logs are gathered on this machine, and where containers see them. A relative path
# is below training/; None is training/result. FLAGPERF_LOG_PATH_HOST and FLAGPERF_LOG_PATH_CONTAINER
# give each its own path.
FLAGPERF_LOG_PATH = None

# "debug", "info", "warning" or "error".
FLAGPERF_LOG_LEVEL = "info"

# Where cases that set `save_steps` write their checkpoints, on the first host of each and in its container:
# a folder with room for three of them, 12 bytes a parameter each. Nothing in it is ever cleaned up. A run
# that was cut off goes on from there with `--continue-from`.
CHECKPOINT_PATH = None

# ---- How a task runs ---------------------------------------------------------------------------------

# "docker" runs tasks in containers of an engine, "process" as plain processes on the hosts, "apptainer" and "pyxis"
# (Slurm, Enroot) in containers that need no engine there. None: what machine_conf.py says, else "docker".
RUNTIME = None

# The engine's command: "docker", "podman", or the absolute path of either; with "apptainer" and "pyxis" that on this
# machine, which builds their images. None: as above, else "docker".
CONTAINER_ENGINE = None

# For RUNTIME = "process": the Python on the hosts that has the framework and psutil. None: as above, else
# "python3".
PROCESS_PYTHON = None

# For RUNTIME = "process": a script on the hosts that bash sources before Python is started, as for `module load`;
# its absolute path. "": none.
PROCESS_SETUP = ""

# The size of /dev/shm in a container.
SHM_SIZE = "32G"

# Empty the hosts' page caches before each round, so that data is read from the disk (needs root there).
CLEAR_CACHES = False

# A round whose training runs longer than this is stopped.
CASE_DEADLINE_HOURS = 24

# How often a round is run again that failed by the machines' fault, never by that of a configuration or of code.
RETRIES = 1

# A training that reports nothing for so many seconds hangs, and is stopped once the stacks of its ranks are kept.
# None: a limit that follows from its own pace, at least 300. 0: never.
HANG_TIMEOUT = None

# True: cases with a training script of their own may write beside their code and data, into copies that are thrown
# away; their results are never closed (docs/existing-cases.md).
CASE_WRITABLE = False

# True: a round that something disturbed (throttling, a clock that drops, others' processes or load, memory errors, a
# pace that does not settle) is INVALID. False: a note of the round says what did (docs/results.md).
REQUIRE_UNDISTURBED = False

# A host with less free disk space is not used.
MIN_FREE_DISK_GIB = 5

# Seconds between two samples of whatever a host has: processors, memory, traffic, power, chips.
MONITOR_INTERVAL = 1

# What is sampled otherwise: False for not at all, or its own interval (docs/telemetry.md has the names).
MONITORS: dict[str, float] = {}  # e.g. {"cores": False, "rapl": 0.1}

# So many seconds are sampled before the ranks start, for the power that a host draws while nothing runs.
# None: 5 where chips are sampled, else 0.
IDLE_READING = None

# g of CO2 equivalent of a kWh where the hosts stand: results get an estimate, labelled so. None: no estimate.
CARBON_G_PER_KWH = None

# What a kWh costs there, e.g. (0.31, "EUR"): likewise.
COST_PER_KWH = None

# A port of this machine at which Prometheus reads how the run is going, e.g. 9435. None: none (docs/observability/).
METRICS_PORT = None

# Where that port is opened: for this machine alone. "0.0.0.0" lets everybody who reaches this machine read it.
METRICS_ADDRESS = "127.0.0.1"

# Names of variables (`-e NAME=value` in ACCE_CONTAINER_OPT) and build arguments that are secret, though their
# names do not say so as DB_PASSWORD or LICENSE_KEY do.
SECRETS: list[str] = []

# ---- Images ------------------------------------------------------------------------------------------

# How every host gets the same image: "stream" builds it on one and sends it to the others, "build"
# builds it on each, "registry" builds it on one and pushes it to IMAGE_REGISTRY.
IMAGE_DISTRIBUTION = "stream"

# host[:port][/path], e.g. "registry.local:5000/flagperf".
IMAGE_REGISTRY = None

# Arguments of the Dockerfile, e.g. {"BASE_IMAGE": "registry.local:5000/python:3.11-slim"}; those that are not
# here are taken from machine_conf.py.
IMAGE_BUILD_ARGS: dict[str, str] = {}

# Where pip finds packages while an image is built; later lines win over earlier ones.
# Take over this machine's own pip settings (`pip config list`: pip.conf and PIP_* variables).
PIP_FROM_HOST = True
# A pip.conf on this machine.
PIP_CONFIG_FILE = None
# The package index, e.g. a mirror near you: "https://mirror.example.org/pypi/simple".
PIP_SOURCE = None
# A file with the certificates of a private CA.
PIP_CA_FILE = None
# Folders on this machine with wheels, for hosts that cannot reach any index.
PIP_WHEEL_DIRS: list[str] = []
