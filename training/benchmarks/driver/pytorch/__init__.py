"""The driver's engine for PyTorch: devices, process group, precision, optimizers, evaluation."""
