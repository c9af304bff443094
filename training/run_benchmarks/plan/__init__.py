"""From the user's two config files to a Plan: everything resolved and checked before a host is touched."""
