"""A real Slurm on this machine, for tests and benches; see README.md."""
