"""Search for a network: automated machine learning over many hosts, as AIPerf (arXiv:2008.07141) measures a cluster."""
