"""Hosts that are pods of Kubernetes: everything that knows its words, but for `kubectl` itself."""
