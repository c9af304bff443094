"""Matrix multiplication, dtype by dtype: flat constants, a reason beside each."""

case_kind = "measure"

# dtype -> M, N, K of C (M x N) = A (M x K) B (K x N). 8192: what a large model's layers come to; each matrix is
# larger than a chip's caches (64 MiB in 8 bits), and its 4096 tiles of 128 x 128 are some 30 rounds of 132 units, so
# that the last, incomplete round costs little. A dtype that the device does not have is left out, with its reason.
sizes = {
    "fp64": (8192, 8192, 8192),
    "fp32": (8192, 8192, 8192),
    "tf32": (8192, 8192, 8192),
    "bf16": (8192, 8192, 8192),
    "fp16": (8192, 8192, 8192),
    "int8": (8192, 8192, 8192),
    "fp8": (8192, 8192, 8192),
}

window_seconds = (
    0.2  # some calls of the slowest (fp64: 20 to 60 ms) and longer than a chip's power control takes
)
