#!/bin/sh
# Install what the standard cases read their data with beside the image's own PyTorch, which pip must not replace: the
# package index has CUDA's under the same name. Hence no dependencies; numpy is the image's.
#
# Not here: nvidia-ml-py, beside which torch.cuda.device_count() of ROCm's PyTorch fails (pytorch/pytorch issue 133259),
# and pip's amdsmi, beside which it counts 0 devices (issue 186516). The monitor takes amdsmi from ROCm's own folder.
set -eu

# Where the image's Python is Ubuntu's own, pip refuses to install beside it; a container has no other use for it.
export PIP_BREAK_SYSTEM_PACKAGES=1
export PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -m pip install --quiet --no-deps h5py==3.16.0 safetensors==0.8.0

python3 -c 'import sys, torch, numpy, h5py, safetensors
print("pytorch_install: torch", torch.__version__, "HIP", torch.version.hip,
      "numpy", numpy.__version__, "h5py", h5py.__version__)
sys.exit(None if torch.version.hip else "pytorch_install: this torch was built without ROCm")'
