"""The search on ImageNet as AIPerf does it (Ren et al. 2021, arXiv:2008.07141): constants, a reason beside each."""

case_kind = "measure"

# -- the search --
search_seconds = 43_200  # 12 hours, as AAH advises; a result needs one at least
max_trials = 0  # it ends by time; 0: by nothing else
ranks_per_worker = 0  # a worker is one host with all its chips; 0: all ranks of a host
heartbeat_seconds = 10  # between two signs of life of a worker
lost_after_seconds = (
    60  # without one a worker is lost: a controller that is started again is back long before
)

# -- architectures --
start = "resnet50"  # AIPerf's first network; "small_resnet" for images of some pixels
start_width = 64  # channels of its first convolution: ResNet-50 as published
most_parameters = 1_073_741_824  # 2^30: none grows larger

# -- training of a trial --
epochs_by_round = (15, 30, 45, 60)  # of a worker's first, second, third and every later trial
patience_epochs = 10  # a trial ends after so many epochs in which its accuracy did not rise
learning_rate = 0.1  # falls linearly to 0 at the trial's last step
momentum = 0.9
label_smoothing = 0.1
batch_sizes = (448, 256, 320, 384, 512)  # of a worker, all its ranks: AIPerf's, then what is tuned among
eval_batch_size = 128  # of one rank: without gradients more fit than in training
precision = "fp16"  # mixed; every chip that such a search is for has it, and the rules ask for no less

# -- data --
image_size = 224  # what is cut out of a stored image of 256
flips = True  # an object is the same in a mirror

prefetch_batches = 4  # made ready ahead, by a thread of its own
dist_timeout_seconds = 900.0  # for the first rank, which waits up to 600 s for a controller that is away
