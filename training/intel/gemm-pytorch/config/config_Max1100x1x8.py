"""Eight Max 1100 at the same time: everything is as the case has it."""
