# What makes PyTorch fast on a CPU; sourced by the environment_variables.sh of its cases.

# Freed memory stays with the process. A training step frees and takes the same blocks again and again; glibc gives
# those of 32 MiB and more, and the heap's end, back to the kernel, which then clears every page anew: up to a
# quarter of a demo's step.
export MALLOC_MMAP_THRESHOLD_=1073741824
export MALLOC_TRIM_THRESHOLD_=8589934592
export MALLOC_TOP_PAD_=67108864
