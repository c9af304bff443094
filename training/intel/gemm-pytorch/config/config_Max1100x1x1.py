"""One Max 1100: everything is as the case has it."""
