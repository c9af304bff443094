"""How a run is shown while it goes on: a panel on a terminal, lines of the log elsewhere."""
