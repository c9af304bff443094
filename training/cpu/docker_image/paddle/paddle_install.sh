#!/bin/sh
# Install PaddlePaddle for CPUs, and what the standard cases read their data with, into this image.
#
# `paddlepaddle` is the build for CPUs (0.2 GB to fetch, 0.7 GB on disk); the one for GPUs has another name.
# Files are compiled as usual: with --no-compile every rank would pay seconds at its start.
set -eu

PADDLE=3.3.1
PADDLE_INDEX=https://www.paddlepaddle.org.cn/packages/stable/cpu/

# The image is the environment: Debian's Python refuses pip outside a virtual one unless told so.
export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'paddle_install: %s\n' "$*"; }

pip_install() {
    say "python3 -m pip install $*"
    python3 -m pip install --quiet "$@"
}

if pip_install "paddlepaddle==$PADDLE"; then
    say "paddlepaddle $PADDLE: found by the pip settings given"
elif pip_install --retries 1 --timeout 20 --extra-index-url "$PADDLE_INDEX" "paddlepaddle==$PADDLE"; then
    say "paddlepaddle $PADDLE: found in $PADDLE_INDEX"
else
    say "paddlepaddle $PADDLE cannot be installed. Give the build a package index that can be reached from here," \
        "or a folder that holds the wheel (pip's --find-links)." >&2
    exit 1
fi

pip_install numpy==2.2.6 h5py==3.16.0 safetensors==0.8.0

python3 -c 'import paddle, numpy, h5py
print("paddle_install: paddle", paddle.__version__, "numpy", numpy.__version__, "h5py", h5py.__version__)'
