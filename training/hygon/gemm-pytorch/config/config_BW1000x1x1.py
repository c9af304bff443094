"""One BW1000: everything is as the case has it."""
