"""From ReCoRD's questions to the HDF5 set that GLM is trained on.

The story is in `command.py`; README.md says how it is used.
"""

TOOL = "benchmarks.glm.prepare 1"
"""Stands in the manifest. The number changes when the same input would give other questions."""
