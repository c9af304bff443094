"""The search's demo: small networks on scikit-learn's digits, some 90 s on two cores, through all phases.

A worker is one rank on one core. Its trials have 1, 2, 3, 4, 4, ... epochs of 0.5 to 2 s, and from the fourth on
hyper-parameters are tuned. The first network reaches an accuracy of 0.5 to 0.7 after one epoch and 0.9 after four;
always the same digit 0.10.
"""

# -- the search --
search_seconds = 75  # beside it the ranks' start, 10 to 15 s
ranks_per_worker = 1
heartbeat_seconds = 2
lost_after_seconds = 10  # so that the demo's short time is not over before a worker is missed

# -- architectures: small enough for a core --
start = "small_resnet"  # 8,258 parameters
start_width = 8
most_parameters = 50_000

# -- training of a trial --
epochs_by_round = (1, 2, 3, 4)
batch_sizes = (32, 64, 96)
eval_batch_size = 360  # all of them at once
precision = "fp32"  # for so small products nothing is gained by another

# -- data --
image_size = 8
flips = False  # a digit in a mirror is none

cpu_threads = 1  # two workers share two cores
