"""BERT pre-training: masked language model and next sentence prediction."""
