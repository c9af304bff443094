#!/bin/sh
# Install what the standard cases read their data with, beside the image's own PyTorch and numpy, which pip must not
# replace: the package index has CUDA's build under the same name. Hence no dependencies.
#
# Not here: nvidia-ml-py, beside which torch.cuda.device_count() of ROCm's PyTorch fails (pytorch/pytorch issue 133259),
# and pip's amdsmi, beside which it counts 0 devices (issue 186516). The monitor takes amdsmi from ROCm's own folder.
set -eu

# Where the image's Python is Ubuntu's own, pip refuses to install beside it; a container has no other use for it.
export PIP_BREAK_SYSTEM_PACKAGES=1
export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -c 'import sys
import torch
from importlib.metadata import version
if not torch.version.hip or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 4):
    sys.exit(f"pytorch_install: torch {torch.__version__} is not built for ROCm, or older than 2.4: "
             "name such an image as BASE_IMAGE")
print("pytorch_install: torch", torch.__version__, "HIP", torch.version.hip, "numpy", version("numpy"))'

python3 -m pip install --quiet --no-deps h5py==3.16.0 safetensors==0.8.0
