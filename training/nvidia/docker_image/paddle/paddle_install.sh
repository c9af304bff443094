#!/bin/sh
# Install PaddlePaddle for CUDA, NVML's Python module for the monitor, and what the standard cases read their data with.
#
# Paddle's builds for CUDA are in its own index; the plain one ends at version 2.6. Where the user's own pip
# settings do not lead to it, Paddle's public index is asked beside them.
# Files are compiled as usual: with --no-compile every rank would pay seconds at its start.
set -eu

PADDLE=3.3.1
CUDA_INDEX=https://www.paddlepaddle.org.cn/packages/stable/cu126/

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'paddle_install: %s\n' "$*"; }

pip_install() {
    say "python3 -m pip install $*"
    python3 -m pip install --quiet "$@"
}

if pip_install "paddlepaddle-gpu==$PADDLE"; then
    say "paddlepaddle-gpu $PADDLE: found by the pip settings given"
elif pip_install --retries 1 --timeout 20 --extra-index-url "$CUDA_INDEX" "paddlepaddle-gpu==$PADDLE"; then
    say "paddlepaddle-gpu $PADDLE: found in $CUDA_INDEX"
else
    say "paddlepaddle-gpu $PADDLE cannot be installed. Give the build a package index that can be reached from here," \
        "or a folder that holds the wheels (pip's --find-links)." >&2
    exit 1
fi

pip_install numpy==2.2.6 h5py==3.16.0 safetensors==0.8.0 nvidia-ml-py==13.615.71

python3 -c 'import sys, paddle, numpy, h5py, pynvml
print("paddle_install: paddle", paddle.__version__, "CUDA", paddle.version.cuda(),
      "numpy", numpy.__version__, "h5py", h5py.__version__)
sys.exit(None if paddle.is_compiled_with_cuda() else "paddle_install: this paddle was built without CUDA")'
