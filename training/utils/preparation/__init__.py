"""What the data preparations of all cases share: text, steps that resume, workers, progress, the command.

The standard library only. A case's `prepare` package adds what is its own: tokens, samples, file formats.
"""
