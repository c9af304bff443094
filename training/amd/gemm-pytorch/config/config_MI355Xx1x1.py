"""One MI355X: everything is as the case has it."""
