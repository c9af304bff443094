"""Runs, cases, rounds and groups of them set against each other: docs/comparing.md."""
