"""From folders of images, one a class, to the shards that a search trains on; README.md of the case says how."""

TOOL = "benchmarks.search.prepare 1"
"""Stands in the manifest. The number changes when the same input would give other samples."""
