"""An image's tag is a hash of what goes into it: it changes with each of these things and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks.images.layers import ImagePlan, plan_image
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree

DOCKER = "acme/docker_image/pytorch"
CASE = "benchmarks/toy/pytorch"
VENDOR_CASE = "acme/toy-pytorch/config"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = make_tree(tmp_path)
    tree.write(f"{DOCKER}/pytorch_install.sh", "pip install torch\n")
    tree.write(f"{DOCKER}/patches/fix.diff", "-a\n+b\n")
    tree.write(f"{CASE}/requirements.txt", "h5py\n")
    tree.write(f"{VENDOR_CASE}/requirements.txt", "acme-smi\n")
    return tree


def image_of(tree: Tree) -> ImagePlan:
    plan = tree.load()
    return plan_image(plan, plan.cases[0])


def configure(line: str) -> Callable[[Tree], None]:
    return lambda tree: tree.configure(test_conf=TEST_CONF + line)


def write(path: str, text: str) -> Callable[[Tree], object]:
    return lambda tree: tree.write(path, text)


def make_executable(tree: Tree) -> None:
    (tree.training / DOCKER / "patches" / "fix.diff").chmod(0o755)


def rename_patch(tree: Tree) -> None:
    path = tree.training / DOCKER / "patches" / "fix.diff"
    path.rename(path.with_name("other.diff"))


def remove(path: str) -> Callable[[Tree], None]:
    return lambda tree: (tree.training / path).unlink()


# what is changed -> the layers whose tags change with it
CHANGES: dict[str, tuple[Callable[[Tree], object], list[str]]] = {
    "Dockerfile": (
        write(f"{DOCKER}/Dockerfile", "FROM base\n"),
        ["dockerfile", "install", "monitors", "requirements"],
    ),
    "build context": (
        write(f"{DOCKER}/patches/fix.diff", "-a\n+c\n"),
        ["dockerfile", "install", "monitors", "requirements"],
    ),
    "a name in it": (rename_patch, ["dockerfile", "install", "monitors", "requirements"]),
    "a permission in it": (make_executable, ["dockerfile", "install", "monitors", "requirements"]),
    ".dockerignore": (
        write(f"{DOCKER}/.dockerignore", "*.md\n"),
        ["dockerfile", "install", "monitors", "requirements"],
    ),
    "install script": (
        write(f"{DOCKER}/pytorch_install.sh", "pip install torch==2\n"),
        ["dockerfile", "install", "monitors", "requirements"],
    ),
    "build arguments": (
        configure('IMAGE_BUILD_ARGS = {"BASE_IMAGE": "other"}\n'),
        ["dockerfile", "install", "monitors", "requirements"],
    ),
    "the monitors' requirements": (
        write("utils/monitors/requirements.txt", "psutil\n"),
        ["monitors", "requirements"],
    ),
    "the case's requirements": (write(f"{CASE}/requirements.txt", "h5py==3\n"), ["requirements"]),
    "the vendor's requirements": (
        write(f"{VENDOR_CASE}/requirements.txt", "acme-smi==2\n"),
        ["requirements"],
    ),
    "requirements that go": (remove(f"{VENDOR_CASE}/requirements.txt"), ["requirements"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_tag_changes_with_what_goes_in(change: str, tree: Tree) -> None:
    edit, layers = CHANGES[change]
    before = image_of(tree)
    edit(tree)
    after = image_of(tree)
    changed = [new.kind for old, new in zip(before.layers, after.layers, strict=True) if old.tag != new.tag]
    assert changed == layers
    assert before.tag != after.tag


NOT_IN_IT: dict[str, Callable[[Tree], object]] = {
    "the case's code": write(f"{CASE}/model.py", "layers = 2\n"),
    "its parameters": write(f"{VENDOR_CASE}/config_X1x1x2.py", "train_batch_size = 64\n"),
    "pip settings": configure('PIP_SOURCE = "https://user:word@mirror.example.org/simple"\n'),
    "run settings": configure("CLEAR_CACHES = True\n"),
    "distribution": configure('IMAGE_DISTRIBUTION = "build"\n'),
    "another framework's image": write("acme/docker_image/pytorch_2.1/Dockerfile", "FROM other\n"),
    "an editor's file": write(f"{DOCKER}/.Dockerfile.swp", "FROM"),
    "bytecode": write(f"{DOCKER}/__pycache__/x.cpython-311.pyc", "x"),
    "nothing": lambda tree: None,
}


@pytest.mark.parametrize("change", NOT_IN_IT)
def test_the_tag_does_not_change_with_anything_else(change: str, tree: Tree) -> None:
    before = image_of(tree)
    NOT_IN_IT[change](tree)
    assert image_of(tree) == before


def test_the_layers_are_named_by_vendor_framework_and_model(tree: Tree) -> None:
    image = image_of(tree)
    kinds = [(layer.kind, layer.tag.partition(":")[0], layer.files) for layer in image.layers]
    assert kinds == [
        ("dockerfile", "flagperf/acme-pytorch", (DOCKER,)),
        ("install", "flagperf/acme-pytorch", (f"{DOCKER}/pytorch_install.sh",)),
        ("monitors", "flagperf/acme-pytorch", ("utils/monitors/requirements.txt",)),
        (
            "requirements",
            "flagperf/acme-pytorch-toy",
            (f"{CASE}/requirements.txt", f"{VENDOR_CASE}/requirements.txt"),
        ),
    ]
    assert image.tag == image.layers[-1].tag
    assert len({layer.tag for layer in image.layers}) == 4


def test_a_vendors_extension_is_the_last_layer(tree: Tree) -> None:
    environment = tree.write(f"{VENDOR_CASE}/environment_variables.sh", "export CUDA_HOME=/opt/cuda\n")
    without = image_of(tree)
    source = tree.write("acme/toy-pytorch/csrc/setup.py", "setup()\n")
    image = image_of(tree)
    *below, layer = image.layers
    assert tuple(below) == without.layers
    assert (layer.kind, layer.files) == (
        "extension",
        ("acme/toy-pytorch/csrc", f"{VENDOR_CASE}/environment_variables.sh"),
    )
    for path in (source, environment):
        path.write_text(path.read_text() + "# other\n")
        changed = image_of(tree)
        assert (changed.layers[:-1], changed.tag == image.tag) == (without.layers, False)
        image = changed


def test_a_dockerfile_alone_gets_what_the_monitors_need(tmp_path: Path) -> None:
    assert [layer.kind for layer in image_of(make_tree(tmp_path)).layers] == ["dockerfile", "monitors"]


def test_a_registry_stands_before_every_tag(tree: Tree) -> None:
    settings = 'IMAGE_DISTRIBUTION = "registry"\nIMAGE_REGISTRY = "registry.local:5000/team/"\n'
    plain = image_of(tree)
    tree.configure(test_conf=TEST_CONF + settings)
    tags = [layer.tag for layer in image_of(tree).layers]
    assert tags == [f"registry.local:5000/team/{layer.tag}" for layer in plain.layers]


@pytest.mark.parametrize("registry", ["registry.local:5000/flagperf", "registry.local:5000/team/flagperf/"])
def test_a_registry_that_ends_with_flagperfs_own_folder_is_taken_as_it_is(registry: str, tree: Tree) -> None:
    plain = image_of(tree)
    tree.configure(test_conf=f'{TEST_CONF}IMAGE_DISTRIBUTION = "registry"\nIMAGE_REGISTRY = "{registry}"\n')
    tags = [layer.tag for layer in image_of(tree).layers]
    above = registry.rstrip("/").removesuffix("/flagperf")
    assert tags == [f"{above}/{layer.tag}" for layer in plain.layers]


def test_two_places_hold_the_same_image(tree: Tree, tmp_path: Path) -> None:
    """The tag does not know where the checkout lies: another controller finds the image of this one."""
    other = Tree(tmp_path / "elsewhere" / "training", tree.config)
    for path in tree.training.rglob("*"):
        if path.is_file():
            other.write(path.relative_to(tree.training).as_posix(), path.read_text())
    assert image_of(other) == image_of(tree)
