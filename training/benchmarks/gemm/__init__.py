"""Matrix multiplication: how fast a chip computes, dtype by dtype."""
