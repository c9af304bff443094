"""Which digit is it? 8 x 8 images that scikit-learn brings: the smallest case, and the example of one."""
