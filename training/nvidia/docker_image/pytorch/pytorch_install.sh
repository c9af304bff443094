#!/bin/sh
# Install PyTorch for CUDA, NVML's Python module for the monitor, and what the standard cases read their data with.
#
# The plain index has PyTorch's CUDA 13.0 build under the bare version number. `===` keeps pip from taking a
# `+cpu` build, which counts as newer than the bare number, from a folder of wheels that the user's own pip
# settings may name. Where there is no such index, PyTorch's public one is asked for its `+cu130` build.
# Files are compiled as usual: with --no-compile every rank would pay seconds at its start.
set -eu

TORCH=2.13.0
CUDA=cu130
CUDA_INDEX=https://download.pytorch.org/whl/$CUDA

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'pytorch_install: %s\n' "$*"; }

pip_install() {
    say "python3 -m pip install $*"
    python3 -m pip install --quiet "$@"
}

if pip_install "torch===$TORCH"; then
    say "torch $TORCH: found by the pip settings given"
elif pip_install --retries 1 --timeout 20 --extra-index-url "$CUDA_INDEX" "torch==$TORCH+$CUDA"; then
    say "torch $TORCH+$CUDA: found in $CUDA_INDEX"
else
    say "torch $TORCH cannot be installed. Give the build a package index that can be reached from here," \
        "or a folder that holds the wheels (pip's --find-links)." >&2
    exit 1
fi

pip_install numpy==2.2.6 h5py==3.16.0 safetensors==0.8.0 nvidia-ml-py==13.615.71

python3 -c 'import sys, torch, numpy, h5py, pynvml
print("pytorch_install: torch", torch.__version__, "CUDA", torch.version.cuda,
      "numpy", numpy.__version__, "h5py", h5py.__version__)
sys.exit(None if torch.version.cuda else "pytorch_install: this torch was built without CUDA")'
