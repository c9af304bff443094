vendor: str = "acme"
dist_backend: str = "gloo"
