"""One C550: everything is as the case has it."""
