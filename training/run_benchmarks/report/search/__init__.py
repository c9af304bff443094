"""The part of a report that shows a search."""
