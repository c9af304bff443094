#!/bin/sh
# Install Level Zero's Python module for the monitor, and what the standard cases read their data with, beside the image's
# own PyTorch, which pip must not replace: the package index has CUDA's under the same name. Hence no dependencies; numpy is
# the image's.
set -eu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -m pip install --quiet --no-deps h5py==3.16.0 safetensors==0.8.0 pyzes==0.1.3

python3 -c 'import sys, numpy, h5py, safetensors
from importlib.metadata import version
print("pytorch_install: torch", version("torch"), "numpy", numpy.__version__, "h5py", h5py.__version__)
sys.exit(None if "+xpu" in version("torch") else "pytorch_install: this torch was not built for XPU")'
