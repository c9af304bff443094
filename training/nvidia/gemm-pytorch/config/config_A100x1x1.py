"""One A100: everything is as the case has it."""
