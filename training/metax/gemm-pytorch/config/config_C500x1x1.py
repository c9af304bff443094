"""One C500: everything is as the case has it."""
