"""The faults of docs/operating.md, each made for real."""
