"""From plain text to the HDF5 set that BERT trains on: the layout of MLPerf's Wikipedia set.

The story is in `command.py`; README.md says how it is used.
"""

TOOL = "benchmarks.bert.prepare 1"
"""Stands in the manifest. The number changes when the same input would give other samples."""
