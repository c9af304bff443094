"""Hosts that Slurm grants: everything that knows its words."""
