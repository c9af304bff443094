"""What deserves a word before a run: what nothing reads, what only a plug-in knows, what the stamp will be."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.plan_notes import notes_of, stamp_of
from run_benchmarks.plan_view import plan_lines
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import BASE, CASE, TEST_CONF, TEST_CONF_2022, VENDOR, Tree, make_tree

HOME = "acme/toy-pytorch"
QUIET_VENDOR = VENDOR.replace('DEVICE_TYPE = "acme"', 'DEVICE_TYPE = "cuda"')
BASE_FILE = "benchmarks/toy/pytorch/config/_base.py"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = make_tree(tmp_path)
    tree.write("acme/vendor.py", QUIET_VENDOR)
    return tree


def _notes(tree: Tree) -> list[str]:
    return notes_of(tree.load())


def test_a_vendor_that_is_as_it_should_be_gives_none(tree: Tree) -> None:
    for path in (
        "acme/acme_monitor.py",
        "acme/README.md",
        "acme/keep_memory.sh",
        f"{HOME}/README.md",
        f"{HOME}/extern/kernels.py",
        f"{HOME}/config/config_common.py",
        f"{HOME}/config/environment_variables.sh",
        "acme/docker_image/pytorch/pytorch_install.sh",
        "benchmarks/toy/pytorch/requirements.txt",
    ):
        tree.write(path, "")
    assert _notes(tree) == []


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        (f"{HOME}/config/environment_variable.sh", "environment_variables.sh"),
        (f"{HOME}/config/requirement.txt", "requirements.txt"),
        ("acme/monitor.py", "acme_monitor.py"),
        ("acme/acme_monitors.py", "acme_monitor.py"),
        (f"{HOME}/externs/hooks.py", "extern"),
        ("acme/docker_image/pytorch/install.sh", "pytorch_install.sh"),
        ("benchmarks/toy/pytorch/requirments.txt", "requirements.txt"),
    ],
)
def test_what_nothing_reads_is_named_with_the_right_name(tree: Tree, path: str, meant: str) -> None:
    written = tree.write(path, "")
    entry = written.parent if written.name == "hooks.py" else written
    assert _notes(tree) == [f"{entry}: nothing reads it: did you mean {meant}?"]
    tree.write(str(Path(path).parent / meant) if entry == written else f"{HOME}/extern/hooks.py", "")
    assert _notes(tree) == [], "beside the right one it is some file of the vendor's"


def test_a_package_that_hides_pips(tree: Tree) -> None:
    tree.write("acme/__init__.py", "")
    [note] = _notes(tree)
    assert note.startswith(f"{tree.training}/acme/__init__.py: hides pip's packages")


def test_what_the_framework_does_not_know_is_left_to_a_plug_in_and_named(tree: Tree) -> None:
    odd = VENDOR.replace('"gloo"', '"ncl"').replace('DEVICE_TYPE = "acme"', 'DEVICE_TYPE = "cude"')
    tree.write("acme/vendor.py", odd)
    device, backend = _notes(tree)
    assert "DEVICE_TYPE = 'cude' must come from a plug-in" in device and device.endswith("did you mean cuda?")
    assert "COLLECTIVE_BACKEND['pytorch'] = 'ncl' must" in backend and "did you mean nccl?" in backend


def test_a_vendor_without_chips(tree: Tree) -> None:
    tree.write("acme/vendor.py", QUIET_VENDOR.replace("CHIPS", "_CHIPS"))
    [note] = _notes(tree)
    assert "CHIPS has no chip" in note and "MFU will be null" in note


@pytest.mark.parametrize(
    ("precision", "device", "missing"),
    [
        ("bf16", "cuda", ""),
        ("fp32", "cuda", "no peak for fp32 of X1"),
        ("auto", "cpu", ""),
    ],
)
def test_a_peak_that_is_missing_for_what_will_be_computed_in(
    tree: Tree, precision: str, device: str, missing: str
) -> None:
    tree.write("acme/vendor.py", QUIET_VENDOR.replace('"cuda"', f'"{device}"'))
    tree.write(BASE_FILE, f'{BASE}precision = "{precision}"\n')
    expected = [f"{tree.training}/acme/vendor.py: CHIPS has {missing}: MFU will be null"] if missing else []
    assert _notes(tree) == expected


def test_nobody_misses_the_peak_of_a_cpu(tree: Tree) -> None:
    tree.write("acme/vendor.py", QUIET_VENDOR.replace("1e14", "None").replace('"cuda"', '"cpu"'))
    tree.write(BASE_FILE, f'{BASE}precision = "auto"\n')
    assert _notes(tree) == []


def test_a_config_that_names_no_chip(tree: Tree) -> None:
    tree.write("acme/vendor.py", QUIET_VENDOR)
    tree.write("acme/toy-pytorch/config/config_demo.py", "")
    conf = TEST_CONF_2022.replace("TOY_DEMO_2X1", "D").replace("config_X1x2x1", "config_demo")
    tree.configure(test_conf=conf.replace("https://mirror.example.org/simple", ""))
    [note] = _notes(tree)
    assert "CHIPS has no demo: devices of any kind pass" in note


@pytest.mark.parametrize(
    ("code", "is_read"),
    [
        ("", False),
        ('size = settings["kernel_width"]', True),
        ('size = settings[f"{part}_width"]', True),
        ('size = settings["kernel_" + part]', True),
        ('size = settings["%s_width" % part]', True),
        ("model = Model(**context.settings)", True),
        ("model = Config.from_dict(dict(context.settings))", True),
        ("def _width(): ...", False),
    ],
)
def test_a_name_of_the_case_that_nothing_reads(tree: Tree, code: str, is_read: bool) -> None:
    tree.write(BASE_FILE, f"{BASE}kernel_width = 3\n")
    tree.write("benchmarks/toy/model.py", code)
    note = f"{tree.training}/{BASE_FILE}: kernel_width is no setting of the driver, and stands nowhere in the case's"
    assert _notes(tree) == ([] if is_read else [f"{note} code: it has no effect"])


def test_what_the_shared_code_does_with_a_cases_names_is_no_use_of_one(tree: Tree) -> None:
    tree.write(BASE_FILE, f"{BASE}kernel_width = 3\n")
    tree.write("benchmarks/common/shape.py", "kind(**{n: v for n, v in settings.items() if n in names})")
    assert len(_notes(tree)) == 1
    tree.write("benchmarks/common/kernels.py", "kernel_width: int")
    assert _notes(tree) == []


HOOKS_FILE = f"{HOME}/extern/hooks.py"


def test_the_hooks_of_a_file_are_named_and_what_else_nothing_calls(tree: Tree) -> None:
    code = "def backward(config, loss, optimizer, scaler): fuse()\n\n\ndef wrap_ddp(config, model): ...\n"
    tree.write(HOOKS_FILE, code)
    tree.write(f"{HOME}/extern/kernels.py", "def fuse(): ...\n\n\n@registered\ndef split(): ...\n")
    (note,) = _notes(tree)
    where, said = f"{tree.training}/{HOOKS_FILE}:4: wrap_ddp", "is no hook, and nothing in extern/ calls it"
    assert note == f"{where} {said}: did you mean model_to_ddp?"
    lines = list(plan_lines(tree.load()))
    assert "# hooks: backward (hooks.py)" in lines
    assert any(line.startswith(f"# extern: {HOME}/extern (hooks.py, kernels.py), SHA-256 ") for line in lines)
    tree.write(HOOKS_FILE, "def speed_up(): ...\n")
    (note, of_fuse) = _notes(tree)
    assert "speed_up is no hook" in note and "the hooks are convert_model, " in note and "fuse" in of_fuse
    assert "# hooks: none" in list(plan_lines(tree.load()))


def _with_metric(tree: Tree, metric: str) -> None:
    for file, text in (("config/_base.py", BASE), ("case.py", CASE)):
        tree.write(f"benchmarks/toy/pytorch/{file}", text.replace("accuracy", metric))


def test_a_metric_that_falls_is_named_for_the_driver(tree: Tree) -> None:
    _with_metric(tree, "val_loss")
    [note] = _notes(tree)
    assert "_base.py: target_val_loss" in note and "name it neg_val_loss" in note
    _with_metric(tree, "neg_val_loss")
    assert _notes(tree) == []


def test_of_a_script_of_the_cases_own_a_loss_may_fall(tree: Tree) -> None:
    _with_metric(tree, "val_loss")
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    assert _notes(tree) == []


def test_the_plan_shows_notes_and_stamp(tree: Tree) -> None:
    tree.write("acme/monitor.py", "")
    lines = list(plan_lines(tree.load()))
    assert (
        f"# note: {tree.training}/acme/monitor.py: nothing reads it: did you mean acme_monitor.py?" in lines
    )
    assert "# rules: closed: nothing differs but what the case lets a vendor change" in lines


def _stamp(tree: Tree) -> str:
    [case] = tree.load().cases
    return stamp_of(case)


def test_the_stamp_is_said_beforehand(tree: Tree) -> None:
    assert _stamp(tree).startswith("closed")
    tree.write(f"{HOME}/extern/hooks.py", "def backward(config, loss, optimizer, scaler): ...\n")
    assert "it is seen when they run" in _stamp(tree)
    tree.write(f"{HOME}/config/config_X1x1x2.py", "hidden_size = 64\ntrain_batch_size = 2\n")
    stamp = _stamp(tree)
    assert stamp.startswith("open") and "hidden_size = 64" in stamp and "train_batch_size" not in stamp


def test_the_stamp_of_a_vendors_own_case(tree: Tree) -> None:
    edit(tree, "test_conf.py", "", 'TEST_TYPE = "customized"\n')
    for file in ("__init__.py", "config/_base.py", "config/mutable_params.py"):
        text = (tree.training / "benchmarks/toy/pytorch" / file).read_text()
        tree.write(f"acme/benchmarks/toy/pytorch/{file}", text)
    tree.write("acme/benchmarks/toy/pytorch/case.py", CASE)
    assert "acme/benchmarks/toy/pytorch is the vendor's own" in _stamp(tree)


def test_a_script_of_the_cases_own(tree: Tree) -> None:
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    assert _stamp(tree).startswith("closed")
    tree.write(f"{HOME}/extern/hooks.py", "")
    assert "what its script lets extern/ replace is not checked" in _stamp(tree)
    (tree.training / f"{HOME}/extern/hooks.py").unlink()
    (tree.training / "benchmarks/toy/pytorch/config/mutable_params.py").unlink()
    assert "it has no mutable names" in _stamp(tree)


def test_plain_processes_cannot_be_told_from_what_disturbs_them(tree: Tree) -> None:
    process = f'{TEST_CONF}RUNTIME = "process"\nPROCESS_PYTHON = "/usr/bin/python3"\n'
    tree.configure(test_conf=process)
    assert _notes(tree) == []
    tree.configure(test_conf=f"{process}REQUIRE_UNDISTURBED = True\n")
    [note] = _notes(tree)
    assert "REQUIRE_UNDISTURBED" in note and "is INVALID" in note
