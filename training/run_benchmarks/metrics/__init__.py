"""How a run is going, for Prometheus: served on METRICS_PORT while the run goes on."""
