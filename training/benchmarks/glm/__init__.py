"""GLM on ReCoRD: reading comprehension as filling a blank with one of several candidates."""
