"""Matrix multiplication on PyTorch."""
