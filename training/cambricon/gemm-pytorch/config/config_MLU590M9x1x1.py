"""One MLU590-M9: everything is as the case has it."""
