"""A stack of a Max 1550: everything is as the case has it."""
