"""One S5000: everything is as the case has it."""
