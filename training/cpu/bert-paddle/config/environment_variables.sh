# What makes Paddle fast on a CPU; read by its libraries when they start.

# Paddle's MKL (2019) takes only Intel's processors for fast ones. Told that this is one (5: AVX2), it
# multiplies matrices twice as fast on AMD's.
if grep -q AuthenticAMD /proc/cpuinfo 2>/dev/null; then export MKL_DEBUG_CPU_TYPE=5; fi

# Transposing as a view, which something must copy later, takes 40 times as long as transposing.
export FLAGS_use_stride_kernel=0

# Freed memory stays with the process: giving it back and taking it again costs more than some of the kernels.
export MALLOC_TOP_PAD_=268435456
