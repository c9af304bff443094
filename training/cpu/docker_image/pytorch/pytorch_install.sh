#!/bin/sh
# Install PyTorch for CPUs, and what the standard cases read their data with, into this image.
#
# PyTorch's own build for CPUs (`+cpu`, 0.2 GB) is preferred: the build of the plain index brings several
# GB of GPU libraries on x86-64. It is looked for, in this order,
#   1. where the user's own pip settings point (index, extra index, folders of wheels);
#   2. in PyTorch's public index of CPU builds, beside the user's own;
#   3. without `+cpu`, wherever pip finds it.
# Files are compiled as usual: with --no-compile every rank would pay 7 to 10 s at its start.
set -eu

TORCH=2.13.0
CPU_INDEX=https://download.pytorch.org/whl/cpu

# The image is the environment: Debian's Python refuses pip outside a virtual one unless told so.
export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

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
    say "torch $TORCH: no +cpu build could be found; on x86-64 this one is several GB larger"
else
    say "torch $TORCH cannot be installed. Give the build a package index that can be reached from here," \
        "or a folder that holds the wheel (pip's --find-links)." >&2
    exit 1
fi

pip_install numpy==2.2.6 h5py==3.16.0 safetensors==0.8.0

python3 -c 'import torch, numpy, h5py
print("pytorch_install: torch", torch.__version__, "numpy", numpy.__version__, "h5py", h5py.__version__)'
