"""BERT pre-training on PyTorch."""
