#!/bin/sh
# Install what the standard cases read their data with, beside the PyTorch that the base image has.
#
# PyPI's torch has the same name as Iluvatar's and would replace it, so pip is held to the torch and the numpy that are
# there. Versions are asked of pip's own records: `torch.__version__` does not say whose build it is.
set -eu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

constraints=$(mktemp)
trap 'rm -f "$constraints"' EXIT

python3 -c 'import sys
from importlib.metadata import version
torch = version("torch")
if "+corex" not in torch or tuple(map(int, torch.split(".")[:2])) < (2, 4):
    sys.exit(f"pytorch_install: torch {torch} is not of Iluvatar, or older than 2.4: name another image as BASE_IMAGE")
print(f"torch=={torch}")
print("numpy==" + version("numpy"))' >"$constraints"

python3 -m pip install --quiet --constraint "$constraints" h5py==3.16.0 safetensors==0.8.0

command -v ixsmi >/dev/null || {
    echo "pytorch_install: the image has no ixsmi on its PATH, with which the monitor samples" >&2
    exit 1
}
printf 'pytorch_install: %s\n' "$(tr '\n' ' ' <"$constraints")"
