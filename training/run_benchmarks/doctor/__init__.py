"""What `run.py doctor` asks beyond the preflight: `examine.examine` asks, `report` shows it."""
