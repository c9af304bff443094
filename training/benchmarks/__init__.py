"""The cases, and the driver they share: what runs inside the containers."""
