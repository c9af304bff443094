"""Whether every secret of a run reaches its task or its image without being seen: what cannot is refused here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import CasePlan, VendorSettings
from run_benchmarks.plan.redact import redact_argv
from run_benchmarks.plan.secrets import Secrets
from utils.errors import nearest

# Every engine knows these arguments and leaves them out of an image's history.
PROXIES = frozenset(
    spelling
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    for spelling in (name, name.upper())
)
SEEN_BY_ALL = "holds a secret that every user of a host would see in its list of processes"
HAND_OVER = "hand it over as a variable, -e NAME=value, or from a file on the hosts: --env-file"
SECRETS_FOLDER = "/run/secrets"


def check_handover(
    reader: Reader, of_vendors: Mapping[str, VendorSettings], cases: Sequence[CasePlan], training_dir: Path
) -> None:
    """Note secrets that would be seen, and names in SECRETS that mark nothing."""
    _check_marked(reader, of_vendors, cases)
    for case in cases:
        _check_options(reader, case)
        _check_dockerfile(reader, case, training_dir)


def dockerfile_of(case: CasePlan, training_dir: Path) -> str:
    """The text of the case's Dockerfile."""
    path = training_dir / case.files.dockerfile_dir / "Dockerfile"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _check_marked(
    reader: Reader, of_vendors: Mapping[str, VendorSettings], cases: Sequence[CasePlan]
) -> None:
    secrets = reader.problems.secrets
    options = [settings.container_options or () for settings in of_vendors.values()]
    options += [case.container_options for case in cases]
    build_args = {name for settings in of_vendors.values() for name in settings.image_build_args}
    variables = {name for each in options for name in secrets.split_options(each)[1]}
    written = reader.file.values.get("SECRETS")
    for number, name in enumerate(written if isinstance(written, (list, tuple)) else ()):
        if isinstance(name, str) and name in secrets.marked and name not in variables | build_args:
            message = "marks nothing: no `-e NAME=value` of a container and no build argument has this name"
            remedy = nearest(name, build_args) or "correct it, or remove it"
            reader.problem(("SECRETS", number), message, remedy, name)


def _check_options(reader: Reader, case: CasePlan) -> None:
    secrets = reader.problems.secrets
    kept, variables = secrets.split_options(case.container_options)
    for name in variables:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            message = f"the variable {name} is secret, and a shell, by which it is handed over, cannot set it"
            reader.problem("ACCE_CONTAINER_OPT", message, "use letters, digits and _ in its name", name)
    for hidden in words_with_secrets(kept, secrets):
        reader.problem("ACCE_CONTAINER_OPT", f"{SEEN_BY_ALL}: {hidden}", HAND_OVER, hidden)


def words_with_secrets(argv: Sequence[str], secrets: Secrets) -> list[str]:
    """The words of a command that hold a secret, as anybody may see them."""
    shown = secrets.hide_in(redact_argv(argv))
    return [hidden for word, hidden in zip(argv, shown, strict=True) if word != hidden]


def _check_dockerfile(reader: Reader, case: CasePlan, training_dir: Path) -> None:
    _, secret = reader.problems.secrets.split(case.image_build_args)
    declared = set(_arguments(dockerfile_of(case, training_dir)))
    for name in sorted(secret.keys() & declared):
        file = f"{case.files.dockerfile_dir}/Dockerfile"
        message = f"is secret, and `ARG {name}` in {file} would put it into the image's history"
        remedy = f"read it from the file {SECRETS_FOLDER}/{name}: RUN --mount=type=secret,id={name} ..."
        if name in PROXIES:
            remedy = f"remove that line: {name} is known to every RUN without it"
        reader.problem(("IMAGE_BUILD_ARGS", name), message, remedy)


def _arguments(dockerfile: str) -> Iterator[str]:
    """The names that a Dockerfile declares as arguments of its build."""
    for words in re.findall(r"^[ \t]*ARG[ \t]+((?:\\\n|.)*)", dockerfile, re.MULTILINE | re.IGNORECASE):
        yield from (word.partition("=")[0] for word in words.split())
