"""One H200: everything is as the case has it."""
