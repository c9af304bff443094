"""Eight 910B2 of one host at the same time: everything is as the case has it."""
