"""One BI-V100: everything is as the case has it."""
