"""Eight stacks, four cards, of Max 1550 at the same time: everything is as the case has it."""
