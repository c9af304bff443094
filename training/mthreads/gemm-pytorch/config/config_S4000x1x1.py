"""One S4000: everything is as the case has it."""
