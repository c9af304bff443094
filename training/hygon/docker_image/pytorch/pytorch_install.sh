#!/bin/sh
# Install what the standard cases read their data with, beside the image's own PyTorch and numpy, which pip must not
# replace: the package index has CUDA's build under the same name. Hence no dependencies.
# Versions are asked of pip's own records: to be imported this torch needs the host's /opt/hyhal, which no build has.
set -eu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -c 'import sys
from importlib.metadata import version
torch = version("torch")
if "dtk" not in torch or tuple(map(int, torch.split(".")[:2])) < (2, 4):
    sys.exit(f"pytorch_install: torch {torch} is not built for DTK, or older than 2.4: name such an image as BASE_IMAGE")
print("pytorch_install: torch", torch, "numpy", version("numpy"))'

python3 -m pip install --quiet --no-deps h5py==3.16.0 safetensors==0.8.0
