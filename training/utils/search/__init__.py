"""Search: what a controller tells of trials and workers in its log, and what that comes to."""
