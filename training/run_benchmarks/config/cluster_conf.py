"""The cluster: which hosts the benchmarks run on and how this machine reaches them."""

# Names or addresses, one for each host, in the order of their node ranks. "localhost" is this machine
# and is used without ssh; a case on several hosts needs names that all of them can reach, e.g.
# HOSTS = ["10.1.2.2", "10.1.2.3"]
# Ranges stand for their hosts: HOSTS = ["node[001-512]", "10.1.3.[1-8,10]"]
# With chips of several vendors, a list for each: HOSTS = {"nvidia": ["10.1.2.2"], "acme": ["10.1.2.9"]}
# On a cluster of Slurm's, a job for each round: HOSTS = slurm(partition="gpu", time="4:00:00"), or, where run.py runs
# in a job, the nodes of that: HOSTS = "slurm". docs/slurm.md has all of it.
# Pods of a Kubernetes cluster: HOSTS = kubernetes(namespace="bench", claims={"/data": "my-data"}); docs/kubernetes.md.
HOSTS = ["localhost"]

# The port of the hosts' ssh servers. None leaves it to your ssh configuration (~/.ssh/config), from
# which also come your keys, your agent and any jump host.
SSH_PORT = None

# The user who logs in on the hosts. None leaves it to your ssh configuration.
SSH_USER = None

# A host whose key is not in your known_hosts file is refused. True records the key of a host that is
# seen for the first time; a key that has changed is refused all the same.
SSH_ACCEPT_NEW_HOST_KEYS = False

# Seconds to wait for a host to answer.
SSH_CONNECT_TIMEOUT = 10

# Seconds without contact and without progress after which a host counts as lost.
HOST_LOST_AFTER = 60

# Hosts that no case is planned for: one takes the place of a host that is lost, see RETRIES in test_conf.py.
# SPARE_HOSTS = ["10.1.2.9"]

# BMCs that this machine asks for the power of whole hosts: docs/telemetry.md has the keys. Passwords do not stand here.
# POWER_METERS = {"node[001-016]": {"address": "https://10.9.1.[1-16]", "user": "reader", "pass_env": "BMC_PASSWORD"}}

# The port on the first host of a case at which its processes meet. It must be free there.
MASTER_PORT = "29501"
