"""Cases and vendors of public FlagPerf, laid beside those that are here, and taken away again."""
