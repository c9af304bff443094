"""GLM on PyTorch."""
