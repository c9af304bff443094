"""What several cases share and no framework brings: tokens, files of samples, initial checkpoints."""
