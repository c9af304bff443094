"""What several cases on PyTorch share: attention, the transformer of Megatron's models, their initial weights."""
