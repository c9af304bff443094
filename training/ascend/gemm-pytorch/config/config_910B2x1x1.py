"""One 910B2: everything is as the case has it."""
