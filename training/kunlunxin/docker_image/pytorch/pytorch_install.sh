#!/bin/sh
# Install what the standard cases read their data with, beside the PyTorch that the base image has.
#
# PyPI's torch has the same name as Kunlunxin's and would replace it, so pip is held to the torch and the numpy that are
# there. Versions are asked of pip's own records: importing this torch may need the driver, which no build has.
set -eu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

constraints=$(mktemp)
trap 'rm -f "$constraints"' EXIT

python3 -c 'import sys
from importlib.metadata import PackageNotFoundError, version
try:
    torch, plugin, numpy = (version(name) for name in ("torch", "xmlir", "numpy"))
except PackageNotFoundError as error:
    sys.exit(f"pytorch_install: the image has no {error.name}: name one with PyTorch for Kunlunxin as BASE_IMAGE")
if tuple(map(int, torch.split(".")[:2])) < (2, 4):
    sys.exit(f"pytorch_install: torch {torch} with xmlir {plugin} is older than 2.4: name a newer image as BASE_IMAGE")
print(f"torch=={torch}")
print(f"numpy=={numpy}")' >"$constraints"

python3 -m pip install --quiet --constraint "$constraints" h5py==3.16.0 safetensors==0.8.0

command -v xpu-smi >/dev/null || {
    echo "pytorch_install: the image has no xpu-smi on its PATH, with which the monitor samples" >&2
    exit 1
}
printf 'pytorch_install: %s\n' "$(tr '\n' ' ' <"$constraints")"
