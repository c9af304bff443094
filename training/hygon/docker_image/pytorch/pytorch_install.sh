#!/bin/sh
# Install what the standard cases read their data with beside the image's own PyTorch, which pip must not replace: the
# package index has CUDA's under the same name. Hence no dependencies; numpy is the image's.
set -eu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -m pip install --quiet --no-deps h5py==3.16.0 safetensors==0.8.0

# By its version, as in 2.9.0+das.opt1.dtk2604: to be imported it needs the host's /opt/hyhal, which no build has.
python3 -c 'import sys, numpy, h5py, safetensors
from importlib.metadata import version
print("pytorch_install: torch", version("torch"), "numpy", numpy.__version__, "h5py", h5py.__version__)
sys.exit(None if "dtk" in version("torch") else "pytorch_install: this torch was not built for DTK")'
