"""What the data preparations of all cases share: the command, text, steps on several processes, building and renaming.

A case's `prepare` package adds what is its own: what it reads, its parameters, its steps, file formats.
"""
