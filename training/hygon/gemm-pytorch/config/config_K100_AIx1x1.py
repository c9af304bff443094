"""One K100_AI: everything is as the case has it."""
