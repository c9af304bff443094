"""One BI-V150: everything is as the case has it."""
