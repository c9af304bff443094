"""A search on one host with eight A100. Chosen by reckoning, not yet measured."""

precision = "fp16"  # mixed, with loss scaling: the peak of the tensor cores; the rules ask for no less

# Of a worker, which is a host: 448 are AIPerf's, on eight chips 56 images each; the others, of which one is tuned
# among, are 32 to 64 each. All are few for 40 GB: the rest is for networks that grow.
batch_sizes = (448, 256, 320, 384, 512)
