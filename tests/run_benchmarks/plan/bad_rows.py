"""The mistakes of the bad-input test, one row each."""

from __future__ import annotations

from dataclasses import dataclass

from tests.run_benchmarks.plan.tree import CLUSTER_CONF, TEST_CONF, TEST_CONF_2022

CONFIG, NO_CASE = 2, 4


@dataclass(frozen=True)
class Row:
    """One mistake and what the report must say of it.

    edits: (file, text, its replacement); `test_conf.py` and `cluster_conf.py` are those of the user.
    where: the file, with its line where the mistake has one. value: as it is shown. remedy: words of it.
    """

    label: str
    edits: tuple[tuple[str, str, str], ...]
    where: str
    name: str
    value: str
    remedy: str
    exit_code: int = CONFIG
    base: str = TEST_CONF


def cluster(label: str, text: str, where: str, name: str, value: str, remedy: str) -> Row:
    """A row whose mistake is in a whole `cluster_conf.py`."""
    return Row(label, (("cluster_conf.py", CLUSTER_CONF, text),), where, name, value, remedy)


def setting(line: str, name: str, value: str, remedy: str, label: str = "") -> Row:
    """A row whose mistake is one line more at the end of `test_conf.py`."""
    edits = (("test_conf.py", "", line + "\n"),)
    return Row(label or line, edits, "test_conf.py:7", name, value, remedy)


def case_key(key: str, value: str, remedy: str, name: str = "CASES") -> Row:
    """A row with another key in CASES."""
    edits = (("test_conf.py", '"toy:pytorch:X1:1:2:1"', key),)
    return Row(f"case key {key}", edits, "test_conf.py:5", name, value, remedy)


def missing(label: str, key: str, name: str, value: str, remedy: str) -> Row:
    """A row with a well-formed key to which there are no files."""
    edits = (("test_conf.py", "toy:pytorch:X1:1:2:1", key),)
    case = key.replace("/", ":")
    return Row(label, edits, "test_conf.py:5", f"{case}: {name}", repr(value), remedy, NO_CASE)


def in_2022(label: str, old: str, new: str, where: str, name: str, value: str, remedy: str) -> Row:
    """A row whose mistake is in a case of the 2022 dialect."""
    return Row(label, (("test_conf.py", old, new),), where, name, value, remedy, base=TEST_CONF_2022)


def vendor(label: str, old: str, new: str, where: str, name: str, value: str, remedy: str) -> Row:
    """A row whose mistake is in `vendor.py`."""
    return Row(label, (("acme/vendor.py", old, new),), where, name, value, remedy, NO_CASE)


CLUSTER_ROWS = [
    cluster("no HOSTS", 'SSH_PORT = "22"\n', "cluster_conf.py", "HOSTS", "", "HOSTS = ["),
    cluster("empty HOSTS", "HOSTS = []\n", "cluster_conf.py:1", "HOSTS", "[]", '["localhost"]'),
    cluster("HOSTS as text", 'HOSTS = "node1"\n', "cluster_conf.py:1", "HOSTS", "'node1'", "write a list"),
    cluster("HOSTS as set", 'HOSTS = {"n1"}\n', "cluster_conf.py:1", "HOSTS", "", "plain data"),
    cluster("a number in HOSTS", 'HOSTS = ["n1", 2]\n', "cluster_conf.py:1", "HOSTS[1]", "2", "write text"),
    cluster("duplicate host", 'HOSTS = ["node1",\n  "NODE1"]\n', "cluster_conf.py:2", "HOSTS[1]", "'NODE1'",
        "remove one"),
    cluster("spare twice", 'HOSTS = ["n1", "n2"]\nSPARE_HOSTS = ["N2"]\n', "cluster_conf.py:2", "SPARE_HOSTS", "'N2'",
        "remove it from one of the two"),
    cluster("spares as a list", 'HOSTS = {"acme": ["n1"]}\nSPARE_HOSTS = ["n2"]\n', "cluster_conf.py:2", "SPARE_HOSTS",
        "['n2']", "as a dict"),
    cluster("spares of nobody", 'HOSTS = {"acme": ["n1"]}\nSPARE_HOSTS = {"other": ["n2"]}\n', "cluster_conf.py:2",
        "SPARE_HOSTS['other']", "'other'", "HOSTS has acme"),
    cluster("spare with a port", 'HOSTS = ["n1"]\nSPARE_HOSTS = ["n2:22"]\n', "cluster_conf.py:2", "SPARE_HOSTS[0]",
        "'n2:22'", "SSH_PORT"),
    cluster("a name that no folder can have", f'HOSTS = ["{"n" * 201}"]\n', "cluster_conf.py:1", "HOSTS[0]",
        "'nnn", "a short alias"),
    cluster("user@host", 'HOSTS = ["alice@node1"]\n', "cluster_conf.py:1", "HOSTS[0]", "'alice@node1'",
        "SSH_USER"),
    cluster("host:port", 'HOSTS = ["node1:2222"]\n', "cluster_conf.py:1", "HOSTS[0]", "'node1:2222'",
        "SSH_PORT"),
    cluster("space in host", 'HOSTS = ["node 1"]\n', "cluster_conf.py:1", "HOSTS[0]", "'node 1'",
        "one name or address"),
    cluster("option as host", 'HOSTS = ["-oProxy"]\n', "cluster_conf.py:1", "HOSTS[0]", "'-oProxy'",
        "one name or address"),
    cluster("unknown group", 'HOSTS = {"acmee": ["n1"]}\n', "cluster_conf.py:1", "HOSTS['acmee']", "'acmee'",
        "did you mean acme?"),
    cluster("empty group", 'HOSTS = {"acme": []}\n', "cluster_conf.py:1", "HOSTS['acme']", "[]", "at least one"),
    cluster("number in a group", 'HOSTS = {\n "acme": ["n1", 2]}\n', "cluster_conf.py:2", "HOSTS['acme'][1]",
        "2", "write text"),
    cluster("host twice in a group", 'HOSTS = {"acme": ["n1",\n "N1"]}\n', "cluster_conf.py:2", "HOSTS['acme'][1]",
        "'N1'", "remove one"),
    cluster("bad address", 'HOSTS = ["10.1.2.300"]\n', "cluster_conf.py:1", "HOSTS[0]", "'10.1.2.300'",
        "0 to 255"),
    cluster("range backwards", 'HOSTS = ["a", "n[3-1]"]\n', "cluster_conf.py:1", "HOSTS[1]", "'n[3-1]'",
        "node[001-512]"),
    cluster("half a bracket", 'HOSTS = ["n[1-3"]\n', "cluster_conf.py:1", "HOSTS[0]", "'n[1-3'", "node[001-512]"),
    cluster("a group's name", 'HOSTS = ["@rack1"]\n', "cluster_conf.py:1", "HOSTS[0]", "'@rack1'", "write its hosts"),
    cluster("far too many", 'HOSTS = ["n[1-99999][1-99999]"]\n', "cluster_conf.py:1", "HOSTS[0]", "'n[1-99999",
        "node[001-512]"),
    cluster("range beyond addresses", 'HOSTS = ["10.1.2.[250-300]"]\n', "cluster_conf.py:1", "HOSTS[0]",
        "'10.1.2.[250-300]'", "0 to 255"),
    cluster("host of a range", 'HOSTS = ["n[1-3]",\n "n2"]\n', "cluster_conf.py:2", "HOSTS[1]", "'n2'",
        "remove one"),
    cluster("host twice by a range", 'HOSTS = ["n[1-5]",\n "n[4-9]"]\n', "cluster_conf.py:2", "HOSTS[1]", "'n[4-9]'",
        "remove one"),
    cluster("range in a group", 'HOSTS = {\n "acme": ["n1", "n[2-"]}\n', "cluster_conf.py:2", "HOSTS['acme'][1]",
        "'n[2-'", "node[001-512]"),
    cluster("port out of range", CLUSTER_CONF.replace("22", "70000"), "cluster_conf.py:2", "SSH_PORT",
        "'70000'", "from 1 to 65535"),
    cluster("port no number", CLUSTER_CONF.replace("22", "ssh"), "cluster_conf.py:2", "SSH_PORT", "'ssh'",
        "a port number"),
    cluster("master port", CLUSTER_CONF + "MASTER_PORT = 0\n", "cluster_conf.py:3", "MASTER_PORT", "0",
        "from 1 to 65535"),
    cluster("misspelt key", CLUSTER_CONF + "MASTER_PROT = 1\n", "cluster_conf.py:3", "MASTER_PROT", "1",
        "did you mean MASTER_PORT?"),
    cluster("a setting of the other file", CLUSTER_CONF + "SHM_SIZE = '1G'\n", "cluster_conf.py:3", "SHM_SIZE", "'1G'",
        "write it into test_conf.py"),
    cluster("small letters", CLUSTER_CONF + "ssh_user = 'a'\n", "cluster_conf.py:3", "ssh_user", "'a'",
        "did you mean SSH_USER?"),
    cluster("text for a flag", CLUSTER_CONF + "SSH_ACCEPT_NEW_HOST_KEYS = 'no'\n", "cluster_conf.py:3",
        "SSH_ACCEPT_NEW_HOST_KEYS", "'no'", "True or False"),
    cluster("no time", CLUSTER_CONF + "SSH_CONNECT_TIMEOUT = 0\n", "cluster_conf.py:3",
        "SSH_CONNECT_TIMEOUT", "0", "greater than 0"),
    cluster("user with a space", CLUSTER_CONF + "SSH_USER = 'a b'\n", "cluster_conf.py:3", "SSH_USER",
        "'a b'", "user who logs in"),
    cluster("syntax error", 'HOSTS = ["node1"\nX = 1\n', "cluster_conf.py:1", "cluster_conf.py", "",
        "correct this line"),
    cluster("fails when executed", "HOSTS = [node1]\n", "cluster_conf.py:1", "cluster_conf.py", "",
        "correct this line"),
]  # fmt: skip

SETTING_ROWS = [
    setting("VENDORS = ['acme']", "VENDORS", "['acme']", 'VENDORS = {"acme"'),
    setting("VENDORS = {'acmee': {}}", "VENDORS['acmee']", "'acmee'", "did you mean acme?"),
    setting("VENDORS = {'acme': {'SHM_SIZE': '1G'}}", "VENDORS['acme']['SHM_SIZE']", "'1G'", "ACCE_CONTAINER_OPT"),
    setting("VENDORS = {'acme': {'ACCE_CONTAINER_OPT': 1}}", "VENDORS['acme']['ACCE_CONTAINER_OPT']", "1",
        '" --gpus all"'),
    Row("no VENDOR", (("test_conf.py", 'VENDOR = "acme"\n', ""),), "test_conf.py", "VENDOR", "",
        'VENDOR = "cpu"'),
    Row("misspelt vendor", (("test_conf.py", '"acme"', '"acmee"'),), "test_conf.py:1", "VENDOR",
        "'acmee'", "did you mean acme?", NO_CASE),
    Row("no vendor.py", (("test_conf.py", '"acme"', '"benchmarks"'),), "test_conf.py:1", "VENDOR",
        "'benchmarks'", "one of: acme", NO_CASE),
    Row("vendor with a path", (("test_conf.py", '"acme"', '"../acme"'),), "test_conf.py:1", "VENDOR",
        "'../acme'", "letters, digits"),
    Row("misspelt setting", (("test_conf.py", "SHM_SIZE", "SHM_SIZ"),), "test_conf.py:3", "SHM_SIZ",
        "'32G'", "did you mean SHM_SIZE?"),
    setting("HOST_LOST_AFTER = 30", "HOST_LOST_AFTER", "30", "write it into cluster_conf.py"),
    setting("MY_DATA = '/raid'", "MY_DATA", "'/raid'", "small letters"),
    setting("IMAGE_BUILD_ARG = {'A': 'b'}", "IMAGE_BUILD_ARG", "{'A': 'b'}",
        "did you mean IMAGE_BUILD_ARGS?"),
    setting("SHM_SIZE = '32 gigabytes'", "SHM_SIZE", "'32 gigabytes'", '"32G"'),
    setting("SHM_SIZE = 32", "SHM_SIZE", "32", "'32G'"),
    setting("MONITORS = ['cpu']", "MONITORS", "['cpu']", "e.g. MONITORS = "),
    setting("MONITORS = {'core': False}", "MONITORS", "'core'", "sources are cpu, cores, mem"),
    setting("MONITORS = {'cores': True}", "MONITORS['cores']", "True", "write False, or its interval"),
    setting("MONITORS = {'cores': 0}", "MONITORS['cores']", "0", "write False, or its interval"),
    setting("METRICS_PORT = 0", "METRICS_PORT", "0", "from 1 to 65535"),
    setting("METRICS_PORT = True", "METRICS_PORT", "True", "from 1 to 65535"),
    setting("METRICS_ADDRESS = 'localhost'", "METRICS_ADDRESS", "'localhost'", "127.0.0.1"),
    setting("REQUIRE_UNDISTURBED = 'no'", "REQUIRE_UNDISTURBED", "'no'", "True or False"),
    *(
        setting(f"MONITORS, REQUIRE_UNDISTURBED = {{'{name}': False}}, True", f"MONITORS['{name}']", "False",
            "sample it (remove this entry)")
        for name in ("cpu", "cores", "task", "accelerators")
    ),
    setting("CLEAR_CACHES = 'False'", "CLEAR_CACHES", "'False'", "True or False"),
    setting("FLAGPERF_LOG_LEVEL = 'verbose'", "FLAGPERF_LOG_LEVEL", "'verbose'",
        "debug, info, warning and error"),
    setting("ACCE_CONTAINER_OPT = ' --name \"x'", "ACCE_CONTAINER_OPT", "' --name \"x'", "quotation marks"),
    setting("ACCE_CONTAINER_OPT = '--gpus all ubuntu'", "ACCE_CONTAINER_OPT", "'--gpus all ubuntu'",
        "each beginning with -"),
    setting("ACCE_CONTAINER_OPT = '--gpus all --rm'", "ACCE_CONTAINER_OPT", "'--gpus all --rm'", "remove --rm"),
    setting("ACCE_CONTAINER_OPT = '--restart always'", "ACCE_CONTAINER_OPT", "'--restart always'",
        "remove --restart"),
    setting("ACCE_CONTAINER_OPT = ['--gpus']", "ACCE_CONTAINER_OPT", "['--gpus']", '" --gpus all"'),
    setting("ACCE_VISIBLE_DEVICE_ENV_NAME = '0,1'", "ACCE_VISIBLE_DEVICE_ENV_NAME", "'0,1'",
        "CUDA_VISIBLE_DEVICES"),
    setting("TEST_TYPE = 'custom'", "TEST_TYPE", "'custom'", "did you mean customized?"),
    setting("RUNTIME = 'dokcer'", "RUNTIME", "'dokcer'", "did you mean docker?"),
    setting("CONTAINER_ENGINE = 'docker run'", "CONTAINER_ENGINE", "'docker run'", '"podman"'),
    setting("PROCESS_PYTHON = '-c'", "PROCESS_PYTHON", "'-c'", "python3"),
    setting("PROCESS_SETUP = 'setup.sh'", "PROCESS_SETUP", "'setup.sh'", "in full"),
    setting("PROCESS_SETUP = '/opt/setup.sh'", "PROCESS_SETUP", "'/opt/setup.sh'", 'RUNTIME = "process"'),
    setting("RANK_LAUNCHER = 'torchrun'", "RANK_LAUNCHER", "'torchrun'", "delete this line"),
    setting("IMAGE_DISTRIBUTION = 'pull'", "IMAGE_DISTRIBUTION", "'pull'", "build, stream and registry"),
    setting("IMAGE_DISTRIBUTION = 'registry'", "IMAGE_DISTRIBUTION", "'registry'", "add IMAGE_REGISTRY"),
    setting("IMAGE_REGISTRY = 'https://r.local'", "IMAGE_REGISTRY", "'https://r.local'", "without https://"),
    setting("IMAGE_BUILD_ARGS = {'A B': 'c'}", "IMAGE_BUILD_ARGS", "'A B'", "use A-Z"),
    setting("PIP_SOURCE = 'mirror.local'", "PIP_SOURCE", "'mirror.local'", '"https://pypi.org/simple"'),
    setting("PIP_CA_FILE = '/no/ca.pem'", "PIP_CA_FILE", "'/no/ca.pem'", "correct the path"),
    setting("PIP_CONFIG_FILE = '/no/pip.conf'", "PIP_CONFIG_FILE", "'/no/pip.conf'", "correct the path"),
    setting("PIP_WHEEL_DIRS = ['/no/wheels']", "PIP_WHEEL_DIRS[0]", "'/no/wheels'",
        "correct the path: /no/wheels"),
    setting("CASE_DEADLINE_HOURS = '24'", "CASE_DEADLINE_HOURS", "'24'", "a number (without quotes)"),
    setting("CASE_DEADLINE_HOURS = float('nan')", "CASE_DEADLINE_HOURS", "nan", "that is finite"),
    setting("CASE_DEADLINE_HOURS = 1e308", "CASE_DEADLINE_HOURS", "1e+308", "of at most 10,000"),
    setting("IDLE_READING = -1", "IDLE_READING", "-1", "of at least 0"),
    setting("IDLE_READING = 3600", "IDLE_READING", "3600", "of at most 600"),
    setting("HANG_TIMEOUT = 1e308", "HANG_TIMEOUT", "1e+308", "of at most 36,000,000"),
    setting("FLAGPERF_PATH_CONTAINER = '/a:b'; FLAGPERF_PATH = None; RUNTIME = 'docker'", "FLAGPERF_PATH_CONTAINER",
        "'/a:b'", "without one"),
    setting("FLAGPERF_PATH = '/a:b'; RUNTIME = 'process'", "FLAGPERF_PATH", "'/a:b'", "without one"),
    setting("CARBON_G_PER_KWH = -1", "CARBON_G_PER_KWH", "-1", "of at least 0"),
    setting("COST_PER_KWH = 0.3", "COST_PER_KWH", "0.3", 'e.g. COST_PER_KWH = (0.31, "EUR")'),
    setting("COST_PER_KWH = (-1, 'EUR')", "COST_PER_KWH", "(-1, 'EUR')", "write both"),
    setting("COST_PER_KWH = (1, 'euro')", "COST_PER_KWH", "(1, 'euro')", "write both"),
    setting("COST_PER_KWH = (True, 'EUR')", "COST_PER_KWH", "(True, 'EUR')", "write both"),
    setting("MIN_FREE_DISK_GIB = -1", "MIN_FREE_DISK_GIB", "-1", "of at least 0"),
    setting("FLAGPERF_PATH = 'flagperf'", "FLAGPERF_PATH", "'flagperf'", "starting with /"),
    setting("FLAGPERF_PATH = '~/flagperf'", "FLAGPERF_PATH", "'~/flagperf'", "starting with /"),
    setting("import pathlib; FLAGPERF_PATH = pathlib.Path('/x')", "FLAGPERF_PATH", "", "str(...)"),
    setting("FLAGPERF_PATH_HOST = '/other'", "FLAGPERF_PATH_HOST", "'/other'", "keep FLAGPERF_PATH, or"),
    setting("FLAGPERF_LOG_PATH = '/dev/null/result'", "FLAGPERF_LOG_PATH", "'/dev/null/result'",
        "below a folder"),
    Row("test_conf syntax", (("test_conf.py", "CASES = {", "CASES = {{"),), "test_conf.py:4",
        "test_conf.py", "", "correct this line"),
]  # fmt: skip

CASE_ROWS = [
    Row("no CASES", (("test_conf.py", "CASES", "_CASES"),), "test_conf.py", "CASES", "", "CASES = {"),
    Row("CASES as text", (("test_conf.py", "", "CASES = 'toy'\n"),), "test_conf.py:7", "CASES", "'toy'",
        "a list of names"),
    Row("CASES empty", (("test_conf.py", "", "CASES = {}\n"),), "test_conf.py:7", "CASES", "{}",
        "add a case", NO_CASE),
    case_key('"toy:pytorch:X1:1:2"', "'toy:pytorch:X1:1:2'",
        "model:framework[_version]:chip:nnodes:nproc:repeat"),
    case_key('"toy:pytorch:X1:0:2:1"', "'toy:pytorch:X1:0:2:1'", "model:framework"),
    case_key('"toy:pytorch:X1:1:two:1"', "'toy:pytorch:X1:1:two:1'", "bert:pytorch_1.8:A100:1:8:1"),
    case_key('"toy::X1:1:2:1"', "'toy::X1:1:2:1'", "model:framework"),
    case_key('"../toy:pytorch:X1:1:2:1"', "'../toy:pytorch:X1:1:2:1'", "[vendor/]model:framework"),
    case_key("12", "12", "in quotes"),
    Row("same key twice", (("test_conf.py", "}\n", '    "toy:pytorch:X1:1:2:1": "/b",\n}\n'),),
        "test_conf.py:6",
        "CASES['toy:pytorch:X1:1:2:1']", "", "remove one of the two"),
    Row("data dir", (("test_conf.py", '"/data/toy"', '"data/toy"'),), "test_conf.py:5",
        "CASES['toy:pytorch:X1:1:2:1']", "'data/toy'", "starting with /"),
    Row("data dir type", (("test_conf.py", '"/data/toy"', "None"),), "test_conf.py:5",
        "CASES['toy:pytorch:X1:1:2:1']", "", '"/data/flagperf"'),
    case_key('"acme/b/toy:pytorch:X1:1:2:1"', "'acme/b/toy:pytorch:X1:1:2:1'", "[vendor/]model:framework"),
    missing("vendor of a case missing", "acmee/toy:pytorch:X1:1:2:1", "vendor", "acmee", "did you mean acme?"),
    Row("no hosts of the vendor", (("cluster_conf.py", '["node1", "node2"]', '{"other": ["node1"]}'),),
        "test_conf.py:5", "toy:pytorch:X1:1:2:1: vendor", "'acme'", 'HOSTS = {"acme": [...]}'),
    Row("nnodes above the group", (("test_conf.py", "X1:1:2:1", "X1:2:1:1"),
        ("cluster_conf.py", '["node1", "node2"]', '{"acme": ["node1"]}')),
        "test_conf.py:5", "toy:pytorch:X1:2:1:1: nnodes", "2", "HOSTS['acme']"),
    Row("nnodes above hosts", (("test_conf.py", "X1:1:2:1", "X1:3:2:1"),), "test_conf.py:5",
        "toy:pytorch:X1:3:2:1: nnodes", "3", "set nnodes to 2 at most"),
    Row("localhost among nodes", (("test_conf.py", "X1:1:2:1", "X1:2:1:1"), ("cluster_conf.py", "node1",
        "localhost")),
        "test_conf.py:5", "toy:pytorch:X1:2:1:1: nnodes", "2", "replace 'localhost' in HOSTS"),
]  # fmt: skip

CASE_ROWS_2022 = [
    in_2022("case without its dict", "TOY_DEMO_2X1 =", "TOY_DEMO_2X2 =", "test_conf.py:13", "CASES",
        "'TOY_DEMO_2X1'", "did you mean TOY_DEMO_2X2?"),
    in_2022("case is no dict", "\n# Real", "\nTOY_DEMO_2X1 = 1\n# Real", "test_conf.py:13", "CASES",
        "'TOY_DEMO_2X1'", "define TOY_DEMO_2X1 = {...}"),
    in_2022("key in a list", "'TOY_DEMO_2X1'", "'toy:pytorch:X1:1:2:1'", "test_conf.py:13", "CASES",
        "'toy:pytorch:X1:1:2:1'", "CASES to be a dict"),
    in_2022("case listed twice", "['TOY_DEMO_2X1']", "['TOY_DEMO_2X1', 'TOY_DEMO_2X1']",
        "test_conf.py:13", "CASES", "'TOY_DEMO_2X1'", "raise repeat"),
    in_2022("key missing", '    "repeat": 3,\n', "", "test_conf.py:15", "TOY_DEMO_2X1['repeat']", "",
        'add "repeat": 1'),
    in_2022("key misspelt", '"nproc": 1', '"nprocs": 1', "test_conf.py:21", "TOY_DEMO_2X1['nprocs']", "1",
        "did you mean nproc?"),
    in_2022("wrong type", '"nnodes": 2', '"nnodes": "2"', "test_conf.py:20", "TOY_DEMO_2X1['nnodes']",
        "'2'", "a whole number"),
    in_2022("flag as number", '"nproc": 1', '"nproc": True', "test_conf.py:21", "TOY_DEMO_2X1['nproc']",
        "True", "a whole number"),
    in_2022("nothing to repeat", '"repeat": 3', '"repeat": 0', "test_conf.py:19",
        "TOY_DEMO_2X1['repeat']", "0", "at least 1"),
    in_2022("more than can be", '"repeat": 3', '"repeat": 1000000', "test_conf.py:19",
        "TOY_DEMO_2X1['repeat']", "1000000", "at most 999,999"),
    in_2022("config disagrees", '"nproc": 1', '"nproc": 4', "test_conf.py:18", "TOY_DEMO_2X1['config']",
        "'config_X1x2x1'", "config for 2x4"),
    in_2022("relative data", '"/mnt/data/toy"', '"toy"', "test_conf.py:23",
        "TOY_DEMO_2X1['data_dir_container']", "'toy'", "starting with /"),
]  # fmt: skip

FILE_ROWS = [
    missing("model missing", "toi:pytorch:X1:1:2:1", "model", "toi", "did you mean toy?"),
    missing("framework missing", "toy:pytorsh:X1:1:2:1", "framework", "pytorsh", "did you mean pytorch?"),
    Row("framework that nobody starts", (("test_conf.py", "toy:pytorch:", "toy:jax:"),), "test_conf.py:5",
        "toy:jax:X1:1:2:1: framework", "'jax'", "there is: deepspeed, deepspeed-torch, flagscale", NO_CASE),
    missing("chip missing", "toy:pytorch:X2:1:2:1", "chip", "X2", "there is: X1"),
    missing("config missing", "toy:pytorch:X1:1:4:1", "config", "config_X1x1x4",
        "there is: config_X1x1x2 and config_X1x2x1"),
    missing("image missing", "toy:pytorch_1.8:X1:1:2:1", "framework", "pytorch_1.8",
        "there is: pytorch and pytorch_2.1"),
    Row("unknown parameter", (("acme/toy-pytorch/config/config_X1x1x2.py", "train_batch_size",
        "train_batchsize"),),
        "config_X1x1x2.py:1", "train_batchsize", "16", "did you mean train_batch_size?", NO_CASE),
    Row("parameter's type", (("acme/toy-pytorch/config/config_X1x1x2.py", "16", "'16'"),),
        "config_X1x1x2.py:1", "train_batch_size", "'16'", "type int", NO_CASE),
    Row("vendor config fails", (("acme/toy-pytorch/config/config_X1x1x2.py", "16", "1 / 0"),),
        "config_X1x1x2.py:1", "config_X1x1x2.py", "", "correct this line", NO_CASE),
    Row("vendor config's sibling", (("acme/toy-pytorch/config/config_X1x1x2.py", "",
        "from config_comon import *\n"),),
        "config_X1x1x2.py:2", "config_X1x1x2.py", "", "correct this line", NO_CASE),
    Row("_base.py fails", (("benchmarks/toy/pytorch/config/_base.py", "128", "hidden"),),
        "_base.py:1", "_base.py", "", "correct this line", NO_CASE),
    vendor("vendor syntax", 'DEVICE_TYPE = "acme"', "DEVICE_TYPE = =", "vendor.py:1", "vendor.py", "",
        "correct this line"),
    vendor("vendor lacks a name", 'DEVICE_TYPE = "acme"\n', "", "vendor.py", "DEVICE_TYPE", "",
        'DEVICE_TYPE = "cuda"'),
    vendor("vendor's type", '["acme-list"]', '"acme-list"', "vendor.py:13", "LIST_DEVICES_COMMAND",
        "'acme-list'", "write a list"),
    vendor("vendor's parser", "parse_device_list", "parse_list", "vendor.py", "parse_device_list", "",
        "define parse_device_list"),
    vendor("chip lacks a key", '        "source": "a test",\n', "", "vendor.py:6", "CHIPS['X1']['source']",
        "", 'add "source"'),
    vendor("chip's peak", "1e14", "'1e14'", "vendor.py:9", "CHIPS['X1']['peak_flops']['bf16']", "'1e14'",
        "a number"),
    vendor("chip's dtype", '"bf16"', '"bfloat16"', "vendor.py:9", "CHIPS['X1']['peak_flops']", "'bfloat16'",
        "use bf16"),
    vendor("chip without names", '["Acme X1"]', "[]", "vendor.py:7", "CHIPS['X1']['device_names']", "[]",
        "this chip alone"),
    vendor("chip with an empty name", '"Acme X1"', '"Acme X1", " "', "vendor.py:7", "CHIPS['X1']['device_names']",
        "['Acme X1', ' ']", "this chip alone"),
    vendor("peak in TFLOP/s", "1e14", "312", "vendor.py:9", "CHIPS['X1']['peak_flops']['bf16']", "312", "312e12"),
    vendor("no device type", 'DEVICE_TYPE = "acme"', 'DEVICE_TYPE = ""', "vendor.py", "DEVICE_TYPE", "''", '"cuda"'),
    vendor("no backend of the framework", '"pytorch": "gloo"', '"paddle": "gloo"', "vendor.py", "COLLECTIVE_BACKEND",
        "{'paddle'", 'add "pytorch"'),
    vendor("a bare word among options", '["--device=/dev/acme"]', '["--device=/dev/acme", "ubuntu"]', "vendor.py:4",
        "CONTAINER_OPTIONS", "['--device=/dev/acme', 'ubuntu']", "each beginning with -"),
    vendor("a second command among options", '["--device=/dev/acme"]', '{"--device=/dev/acme; rm -rf /": "the chip"}',
        "vendor.py:4", "CONTAINER_OPTIONS", "{'--device=/dev/acme; rm -rf /'", "no shell reads them"),
    vendor("a path in place of an option", '["--device=/dev/acme"]', '{"/dev/acme{n}": "the chip"}', "vendor.py:4",
        "CONTAINER_OPTIONS", "{'/dev/acme{n}'", "--OPTION=VALUE"),
    vendor("braces that stand for nothing", "/dev/acme", "/dev/acme{m}", "vendor.py:4", "CONTAINER_OPTIONS",
        "['--device=/dev/acme{m}']", "write {n}"),
    vendor("a name for the containers", "--device=/dev/acme", "--name=acme", "vendor.py:4", "CONTAINER_OPTIONS",
        "['--name=acme']", "remove --name"),
    vendor("a command for a shell", '["acme-list"]', '["acme-list | grep X1"]', "vendor.py:13", "LIST_DEVICES_COMMAND",
        "['acme-list | grep X1']", "let parse_device_list choose"),
    vendor("a pipe in a command", '["acme-list"]', '["acme-list", "|", "tail"]', "vendor.py:13", "LIST_DEVICES_COMMAND",
        "['acme-list', '|', 'tail']", "parse_device_list chooses"),
    vendor("a field that no chip has", '"memory_gib": 32.0,', '"memory_gib": 32.0, "tdp": 400,', "vendor.py:8",
        "CHIPS['X1']['tdp']", "400", "remove it; there is device_names"),
    vendor("a source of no figure", '"a test"', '{"memory_gb": "a test"}', "vendor.py:10",
        "CHIPS['X1']['source']['memory_gb']", "'a test'", "did you mean memory_gib?"),
    vendor("chip is no dict", "CHIPS = {", "CHIPS = {'X2': 3,", "vendor.py:5", "CHIPS['X2']", "3", "write a dict"),
]  # fmt: skip

ROWS = [*CLUSTER_ROWS, *SETTING_ROWS, *CASE_ROWS, *CASE_ROWS_2022, *FILE_ROWS]
