"""One MI300X: everything is as the case has it."""
