"""One P800: everything is as the case has it."""
