"""The digits on PyTorch."""
