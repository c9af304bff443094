"""BERT pre-training on PaddlePaddle."""
