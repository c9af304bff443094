"""All runs of a result directory: an index of them, what `run.py list` prints and what `run.py serve` shows.

The folders are the truth: the index holds nothing that does not follow from them, and may be deleted at any time.
"""
