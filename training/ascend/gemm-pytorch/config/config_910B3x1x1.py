"""One 910B3: everything is as the case has it."""
