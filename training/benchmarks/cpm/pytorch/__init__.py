"""CPM-1 on PyTorch."""
