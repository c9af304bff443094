"""Search: a controller and workers look for the best network by training many, which measures a whole cluster."""
