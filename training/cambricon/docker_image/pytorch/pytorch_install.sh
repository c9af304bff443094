#!/bin/sh
# Install what the standard cases read their data with beside the PyTorch that the image brings. No package may bring
# another PyTorch or NumPy with it: `--no-deps`, and the image must hold both.
set -eu

export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'pytorch_install: %s\n' "$*"; }

# A build of torch_mlu says after its plus which PyTorch it is for: 1.33.1+torch2.11.0.
python3 -c 'import sys, importlib.metadata as installed
try:
    about = {name: installed.version(name) for name in ("torch", "torch-mlu", "numpy")}
except installed.PackageNotFoundError as error:
    sys.exit(f"pytorch_install: the base image has no {error.name}: name one with PyTorch for MLUs (BASE_IMAGE)")
print("pytorch_install:", about)
torch, wanted = about["torch"].partition("+")[0], about["torch-mlu"].partition("+torch")[2]
sys.exit(f"pytorch_install: torch_mlu is for torch {wanted}" if wanted and wanted != torch else None)'

say "python3 -m pip install --no-deps h5py==3.16.0 safetensors==0.8.0"
python3 -m pip install --quiet --no-deps h5py==3.16.0 safetensors==0.8.0

# PyTorch itself is not imported: the plug-in looks for the driver, which no build has.
python3 -c 'import numpy, h5py
print("pytorch_install: numpy", numpy.__version__, "h5py", h5py.__version__)'
