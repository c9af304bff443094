# hipBLASLt computes in TF32 only where this allows it, on MI300 and later (test_linalg of PyTorch sets it, from 2.7 on).
export HIPBLASLT_ALLOW_TF32=1
