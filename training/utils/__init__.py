"""What the controller, the containers and the monitors share: errors, records, events, telemetry, figures.

Everything here needs the standard library only, so that it runs on the controller, inside every
image and in a monitor alike.
"""
