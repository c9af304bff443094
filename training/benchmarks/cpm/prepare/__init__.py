"""From text, a document a line, to the chunks of tokens that CPM trains on.

The story is in `command.py`; README.md says how it is used.
"""

TOOL = "benchmarks.cpm.prepare 1"
"""Stands in the manifest. The number changes when the same input would give other samples."""
