"""The driver's engine for PaddlePaddle: devices, process group, precision, optimizer, evaluation."""
