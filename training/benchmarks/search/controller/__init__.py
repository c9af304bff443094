"""The controller of a search: hands out trials, keeps what came of them, ends in time."""
