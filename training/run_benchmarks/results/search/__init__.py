"""A round that searched: its controller's log read, checked and made into figures."""
