"""How pip reaches packages while an image is built: the user's settings and, if wanted, this machine's own.

The merge, from weakest to strongest: this machine's pip configuration (PIP_FROM_HOST), PIP_CONFIG_FILE,
then PIP_SOURCE, PIP_CA_FILE and PIP_WHEEL_DIRS. Only options that say where packages come from are taken:
`user`, `target` and the like would change what the build itself does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from run_benchmarks.plan.config_file import Entry
from run_benchmarks.plan.host_pip import host_pip_options, read_pip_conf
from run_benchmarks.plan.pip_record import PipConf, PipSettings
from run_benchmarks.plan.reader import Reader
from run_benchmarks.user_path import user_path
from utils.errors import FlagPerfError

# pip's names for the options that say where packages come from. `cert` is not among them: its file is
# handed over by itself. A client certificate is not handed over: its key would become part of a build.
OPTIONS = (
    "index-url", "extra-index-url", "no-index", "find-links", "trusted-host", "proxy", "timeout", "retries",
    "pre", "prefer-binary", "only-binary", "no-binary",
)  # fmt: skip
# Where a process may be told of a private CA without pip knowing: requests' and OpenSSL's variables.
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_HOST = "this machine's pip configuration"


def read_pip_settings(reader: Reader, training_dir: Path) -> PipSettings:
    """All PIP_* settings of `test_conf.py`, merged. Relative paths are below `training_dir`."""
    written = reader.read(PipConf) or PipConf()
    options = _host_options(reader) if written.pip_from_host else {}
    conf = _existing("PIP_CONFIG_FILE", written.pip_config_file, reader, training_dir)
    if conf is not None:
        try:
            options |= read_pip_conf(conf)
        except FlagPerfError as error:
            reader.problem("PIP_CONFIG_FILE", error.message, error.remedy)
    if written.pip_source:
        options["index-url"] = written.pip_source
    ca_file = _existing("PIP_CA_FILE", written.pip_ca_file, reader, training_dir) or _ca_file(options, reader)
    folders = (
        _existing(("PIP_WHEEL_DIRS", number), folder, reader, training_dir, Path.is_dir)
        for number, folder in enumerate(written.pip_wheel_dirs)
    )
    wheels = (*filter(None, folders), *_local_links(options))
    return PipSettings(_for_the_build(options), ca_file, tuple(dict.fromkeys(wheels)))


def _host_options(reader: Reader) -> dict[str, str]:
    try:
        options = host_pip_options(os.environ)
    except FlagPerfError as error:
        remedy = f"{error.remedy}; or set PIP_FROM_HOST = False"
        reader.problems.add(error.where, Path(error.where).name, None, error.message, remedy)
        return {}
    bundles = [os.environ.get(name, "") for name in CA_VARIABLES]
    there = [bundle for bundle in bundles if Path(bundle).is_file()]
    return {"cert": there[0], **options} if there else options


def _ca_file(options: Mapping[str, str], reader: Reader) -> Path | None:
    cert = options.get("cert")
    if not cert:
        return None
    path = Path(os.path.expanduser(cert))  # noqa: PTH111 - as pip does, to which a strange home is no error
    if not path.is_file():
        message = "pip's option `cert` names a file that does not exist"
        from_file = reader.file.values.get("PIP_CONFIG_FILE")
        where = reader.file.where("PIP_CONFIG_FILE") if from_file else _HOST
        reader.problems.add(where, "cert", cert, message, "correct it, or set PIP_CA_FILE")
        return None
    return path.absolute()


def _for_the_build(options: Mapping[str, str]) -> dict[str, str]:
    """The options without the paths of this machine, which are handed into the build in other ways."""
    kept = {name: value for name, value in options.items() if name in OPTIONS}
    links = [link for link in kept.pop("find-links", "").split() if _local_path(link) is None]
    if links:
        kept["find-links"] = " ".join(links)
    for name in ("index-url", "extra-index-url"):
        paths = {url: _local_path(url) for url in kept.pop(name, "").split()}
        # pip passes over an index folder of this machine that is not even there
        urls = [url for url, path in paths.items() if path is None or path.is_dir()]
        if urls:
            kept[name] = " ".join(urls)
    return kept


def _local_links(options: Mapping[str, str]) -> list[Path]:
    """The folders of this machine among find-links; pip itself passes over those that do not exist."""
    paths = (_local_path(link) for link in options.get("find-links", "").split())
    return [path.absolute() for path in paths if path is not None and path.is_dir()]


def _local_path(link: str) -> Path | None:
    parts = urlsplit(link)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(os.path.expanduser(link)) if not parts.scheme else None  # noqa: PTH111 - as above


def _existing(
    entry: Entry | str,
    written: str,
    reader: Reader,
    training_dir: Path,
    is_there: Callable[[Path], bool] = Path.is_file,
) -> Path | None:
    """A path on this machine that must be there; None where none is given, or it is not."""
    if not written:
        return None
    try:
        path = user_path(written, training_dir)
    except FlagPerfError as error:
        reader.problem(entry, error.message, error.remedy, written)
        return None
    if is_there(path):
        return path
    what = "file" if is_there == Path.is_file else "folder"
    reader.problem(entry, f"names no {what} on this machine", f"correct the path: {path}", written)
    return None
