"""The search on PyTorch."""
