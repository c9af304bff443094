"""`HOSTS = slurm(...)` and `HOSTS = "slurm"`: what becomes of them, and what is refused before anything is launched."""

from __future__ import annotations

import pytest

from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.host_ranges import MOST_HOSTS
from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.slurm import SlurmSettings, nodes_in
from run_benchmarks.plan_notes import notes_of
from run_benchmarks.plan_view import plan_lines
from tests.run_benchmarks.plan.test_case_code import HOME, WORKS
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree

TWO_NODES = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")


@pytest.fixture(autouse=True)
def in_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)


def hosts(tree: Tree, text: str) -> None:
    tree.configure(cluster_conf=f"HOSTS = {text}\n", test_conf=TWO_NODES)


def test_a_job_is_asked_for_by_any_option_of_sbatch(tree: Tree) -> None:
    hosts(
        tree, 'slurm(partition="gpu", time="2:00:00", cpus_per_task=8, spread_job=True, qos=None, hold=True)'
    )
    plan = tree.load()
    options = ("--partition=gpu", "--cpus-per-task=8", "--spread-job")
    assert plan.cluster.slurm == SlurmSettings(time="2:00:00", hold=True, options=options)
    assert plan.cluster.hosts == () == plan.cases[0].hosts
    assert plan_as_dict(plan)["cluster"]["slurm"]["time"] == "2:00:00"


def test_a_plan_shows_what_is_asked_of_slurm_and_rehearses_on_made_up_hosts(tree: Tree) -> None:
    hosts(tree, 'slurm(partition="gpu")')
    lines = list(plan_lines(tree.load()))
    assert "# runtime docker, hosts that Slurm grants" in lines
    (asked,) = [line for line in lines if line.startswith("# asked of Slurm: ")]
    assert "sbatch" in asked and "--nodes=2" in asked and "--partition=gpu" in asked
    assert any(line.startswith("# ----- host granted2, node rank 1") for line in lines)
    assert not any("it would fail" in line for line in lines)


def test_inside_a_job_its_nodes_are_the_hosts(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "nid[000008-000010],login1")
    hosts(tree, '"slurm"')
    plan = tree.load()
    assert plan.cluster.hosts == ("nid000008", "nid000009", "nid000010", "login1")
    assert plan.cases[0].hosts == ("nid000008", "nid000009")
    assert plan.cluster.slurm is not None and plan.cluster.slurm.inside


def test_a_job_that_is_too_small_is_refused(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "gpu1")
    hosts(tree, '"slurm"')
    code, (problem,) = tree.problems()
    assert code == 2
    assert problem.message == "is more than the 1 host of the job that run.py is in"
    assert "ask Slurm for 2 nodes" in problem.remedy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('slurm(time="2 hours")', "is no time limit"),
        ("slurm(hold=1)", "has the wrong type"),
        ("slurm(abandoned_after=1)", "is out of range"),
        ("slurm(save_before=-1)", "is out of range"),
        ('slurm(nodes="4")', "is set by FlagPerf itself"),
        ('slurm(job_name="mine")', "is set by FlagPerf itself"),
        # sbatch takes the beginning of a name for it
        ('slurm(job="mine")', "is read by sbatch as job_name, which is set by FlagPerf itself"),
        ('slurm(part="gpu")', "is read by sbatch as partition"),
        ('slurm(**{"job-name": "mine"})', "is set by FlagPerf itself"),
        ("slurm(mem=[1])", "is neither text, a whole number, True, False nor None"),
        (r'slurm(account="a\nb")', "is neither text, a whole number, True, False nor None"),
        ('slurm("gpu")', "takes 0 positional arguments"),
        ('{"acme": slurm(partition="gpu")}', "cannot be asked for by vendor"),
        ('{"acme": "slurm"}', "cannot be asked for by vendor"),
        ('"slrum"', "has the wrong type"),
        ('slurm()\nSPARE_HOSTS = ["n9"]', "has hosts of its own"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tree: Tree, text: str, words: str) -> None:
    hosts(tree, text)
    _, problems = tree.problems()
    assert any(words in problem.message for problem in problems), problems
    assert all(problem.where.startswith(str(tree.config / "cluster_conf.py:")) for problem in problems)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("5", 300),
        ("4:30", 300),  # Slurm rounds up to the minute
        ("4:00:00", 14_400),
        ("1-12", 129_600),
        ("1-2:30", 95_400),
        ("1-00:00:01", 86_460),
        ("0", None),  # no limit
        ("", None),  # the partition's
    ],
)
def test_a_limit_is_read_as_slurm_reads_it(time: str, seconds: float | None) -> None:
    assert SlurmSettings(time=time).limit_s == seconds


def test_a_search_that_its_job_would_not_see_the_end_of_is_refused(tree: Tree) -> None:
    tree.write(f"{HOME}/config/_base.py", 'case_kind = "measure"\nsearch_seconds = 75\n')
    tree.write("acme/toy-pytorch/config/config_X1x2x1.py", "")
    tree.write(f"{HOME}/case.py", WORKS.format('("controller", "worker")'))
    hosts(tree, "slurm(time=1)")
    code, (problem,) = tree.problems()
    assert code == 4 and problem.name.endswith("search_seconds") and "75" in problem.value
    assert 'does not fit in slurm(time="1"), which leaves a round 0:45' in problem.message
    hosts(tree, "slurm(time=2)")
    (note,) = (note for note in notes_of(tree.load()) if "slurm(" in note)
    assert "CASE_DEADLINE_HOURS gives a round 24 h, but it is ended 1:30 after" in note
    hosts(tree, 'slurm(time="1-1")')
    assert not any("slurm(" in note for note in notes_of(tree.load()))


def test_a_meter_may_be_of_a_node_that_slurm_grants(tree: Tree) -> None:
    hosts(tree, 'slurm()\nPOWER_METERS = {"gpu1": {"address": "https://10.9.1.2", "user": "u"}}')
    assert list(tree.load().cluster.meters) == ["gpu1"]


def test_nodes_are_read_as_slurm_writes_them() -> None:
    assert nodes_in("a[1-2,7],b3,r[0-1]n[08-09]") == (
        "a1",
        "a2",
        "a7",
        "b3",
        "r0n08",
        "r0n09",
        "r1n08",
        "r1n09",
    )
    assert nodes_in("") == ()
    assert len(nodes_in(",".join(f"{number:x}-node-of-a-rack" for number in range(MOST_HOSTS)))) == MOST_HOSTS
    for text in ("a[1-2", "a[1-99999]", "a]", "a[1-2,b", "a,b[1]]"):
        with pytest.raises(ValueError, match=r"has|stands for"):
            nodes_in(text)


@pytest.mark.parametrize("node", ["../x", "..", "/etc", "-oProxyCommand=x", "a" * 300, "a b", "a\n"])
def test_a_node_has_a_name_that_stays_in_its_folder(node: str) -> None:
    with pytest.raises(UnfitError):
        nodes_in(f"gpu1,{node}")


def test_nodes_are_no_more_in_all_than_one_entry_may_have() -> None:
    assert len(nodes_in("a[1-5000],b[1-5000]")) == MOST_HOSTS
    for listed in ("a[1-5000],b[1-5001]", ",".join(["a[1-9999]"] * 1000)):
        with pytest.raises(ValueError, match="the list of nodes stands for more than 10000"):
            nodes_in(listed)
