"""A run in the forms of others: an archive, MLPerf's log, ais-bench's result. Read-only on the run's folder."""
