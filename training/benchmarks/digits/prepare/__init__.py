"""Prepares the digits' data."""
