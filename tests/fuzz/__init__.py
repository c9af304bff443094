"""Property tests of what comes from outside: for any input something holds.

In the suite each runs a few examples, always the same ones. With FUZZ_SECONDS=600 all of them together go on for ten
minutes with new ones, which Hypothesis makes smaller where one fails and keeps in `.hypothesis/`.
"""
