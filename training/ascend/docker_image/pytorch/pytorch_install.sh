#!/bin/sh
# Install PyTorch, its plug-in for Ascend NPUs, and what the standard cases read their data with.
#
# torch_npu works with one version of PyTorch, in its build for CPUs; 2.12.0 goes with CANN 9.1.0 (Ascend/pytorch,
# COMPATIBILITY.en.md). PyTorch's `+cpu` build is looked for by the user's own pip settings, then in PyTorch's public
# index, then without `+cpu` (on x86-64 that one brings several GB of GPU libraries). All that follows is installed
# under the constraint that torch stays.
set -eu

TORCH=2.12.0
TORCH_NPU=2.12.0
CPU_INDEX=https://download.pytorch.org/whl/cpu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# PyTorch imports its plug-ins by itself, and this one needs the driver, which no build has.
export TORCH_DEVICE_BACKEND_AUTOLOAD=0

say() { printf 'pytorch_install: %s\n' "$*"; }

pip_install() {
    say "python3 -m pip install $*"
    python3 -m pip install --quiet "$@"
}

if pip_install "torch==$TORCH+cpu"; then
    say "torch $TORCH+cpu: found by the pip settings given"
elif pip_install --retries 1 --timeout 20 --extra-index-url "$CPU_INDEX" "torch==$TORCH+cpu"; then
    say "torch $TORCH+cpu: found in $CPU_INDEX"
elif pip_install "torch==$TORCH"; then
    say "torch $TORCH: no +cpu build could be found"
else
    say "torch $TORCH cannot be installed. Give the build a package index that can be reached from here," \
        "or a folder that holds the wheels (pip's --find-links)." >&2
    exit 1
fi

pip_install "torch==$TORCH" "torch-npu==$TORCH_NPU" numpy==2.2.6 h5py==3.16.0 safetensors==0.8.0

python3 -c 'import sys, importlib.metadata, importlib.util, torch, numpy, h5py
print("pytorch_install: torch", torch.__version__, "torch_npu", importlib.metadata.version("torch-npu"),
      "numpy", numpy.__version__, "h5py", h5py.__version__)
wrong = torch.__version__.partition("+")[0] != sys.argv[1] or importlib.util.find_spec("torch_npu") is None
sys.exit("pytorch_install: this torch is not the one that torch_npu works with" if wrong else None)' "$TORCH"
