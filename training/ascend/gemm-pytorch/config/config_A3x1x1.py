"""One die of an A3: everything is as the case has it."""
