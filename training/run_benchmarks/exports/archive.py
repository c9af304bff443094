"""A run in one file: its result tree, its configuration and the code that ran, checksummed, without secrets.

The same run gives the same bytes: files are sorted, and owners and times are nobody's.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from run_benchmarks.exports.deployed_code import code_of, digest_that_ran, environment_scripts
from run_benchmarks.exports.destination import new_file
from run_benchmarks.exports.planned_run import read_plan
from run_benchmarks.exports.redaction import Redaction, Searched
from run_benchmarks.exports.run_files import RunFile, files_below, node_of
from run_benchmarks.exports.secrets_in_run import redaction_of
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.folder import RunFolder, open_folder
from run_benchmarks.results.load import run_in
from run_benchmarks.results.summary import Run
from utils.errors import FlagPerfError
from utils.numbers import counted

FORMAT = 1
ABOUT, SUMS, README = "archive.json", "SHA256SUMS", "README.md"
ENDINGS = (".tar.gz", ".tgz")
RUN, CODE = "run/", "code/"
_README = """\
# {run}

A run of FlagPerf, without the secrets that could be recognised: `***` stands for each.

- `run/`: its result folder. `run.py show FOLDER` reads it, `run.py show FOLDER --rescore` judges it again; its
  `plan.json` is all that the configuration files and their defaults came to.
- `code/`: what the hosts got of the cases and their vendors, the recipes of the images included, where it was there.
- `archive.json`: which code and data the run had, what was left out, and in which files something was hidden.

Is it whole? `sha256sum --check --quiet SHA256SUMS`. Once more: `run.py reproduce ARCHIVE`.
"""


def export_archive(path: Path, output: Path, secrets: Secrets, training_dir: Path) -> list[str]:
    """Write the run in the folder `path` to `output`, a `.tar.gz`; what was left out and hidden, line by line.

    Args:
        secrets: what this controller has to hide; what the run's files name is hidden besides.
        training_dir: where the code may still lie.

    Raises:
        FlagPerfError: `path` is no run, `output` is there already, or is no name of an archive.
    """
    folder = open_folder(path)
    run = run_in(folder, lambda: secrets)
    scripts = environment_scripts(folder.plan, training_dir)
    redaction, files = redaction_of(folder, run, scripts, list(files_below(path)), secrets)
    with (
        new_file(output, ENDINGS) as made,
        open(made, "wb", opener=partial(os.open, mode=0o600)) as raw,  # as plan.json: for its owner alone
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8") as tar,
    ):
        archive = _Archive(tar, redaction)
        archive.add_run(files, made.with_name("redacted"))
        archive.add_code(folder, run, training_dir)
        archive.close(run)
    unread = [
        f"what {each.name} sets is not recognised: {each.objection}" for each in scripts if each.objection
    ]
    return [*unread, *archive.notes()]


@dataclass
class _Archive:
    """Puts files into `tar`. sums: name -> SHA-256. left_out: name -> why. hidden: where a secret was taken out."""

    tar: tarfile.TarFile
    redaction: Redaction
    sums: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    about: dict[str, object] = field(default_factory=dict)
    searched: dict[str, Searched] = field(default_factory=lambda: defaultdict(Searched))

    def add_run(self, files: list[RunFile], scratch: Path) -> None:
        """The result tree, each file without its secrets, by way of the file `scratch`."""
        for file in files:
            name = f"{RUN}{self.redaction.name(file.name)}"
            objection = file.objection
            if not objection and not _fits(name):
                objection = "its path is too long for an archive"
            if not objection and name in self.sums:
                objection = "another file has the same name when its secrets are hidden"
            if objection:
                self.left_out[name] = objection
                continue
            try:
                changed = self._redacted(file, scratch)
            except FlagPerfError as error:
                self.left_out[name] = f"it {error.message}"
                continue
            if changed or name != f"{RUN}{file.name}":
                self.hidden.append(name)
            with scratch.open("rb") as content:
                self._add(name, content, scratch.stat().st_size)

    def add_code(self, folder: RunFolder, run: Run, training_dir: Path) -> None:
        """The code that ran, if it is still there."""
        digest = digest_that_ran(run.results)
        origins = [each.provenance for each in run.results if each.provenance]
        self.about = {"tree": digest, "data": dict(origins[0].data) if origins else {}}
        try:
            files = code_of(read_plan(folder.plan, "plan.json"), digest, training_dir)
        except FlagPerfError as error:
            self.left_out[CODE] = self.redaction.name(str(error))
            return
        for name, content in sorted(files.items()):
            if not _fits(f"{CODE}{name}"):
                self.left_out[f"{CODE}{name}"] = "its path is too long for an archive"
                continue
            text = content.decode("utf-8", "surrogateescape")
            clean = self.redaction.code(name, text)
            if clean != text:
                self.hidden.append(f"{CODE}{name}")
            self._add_text(f"{CODE}{name}", clean)

    def close(self, run: Run) -> None:
        """What the archive says of itself, and the checksums."""
        about = {"format": FORMAT, "run": run.name, "uid": run.uid, **self.about}
        about |= {"hidden": self.hidden, "left_out": self.left_out}
        self._add_text(ABOUT, json.dumps(about, indent=2) + "\n")
        self._add_text(README, _README.format(run=run.name))
        self._add_text(SUMS, "".join(f"{digest}  {name}\n" for name, digest in self.sums.items()))

    def notes(self) -> list[str]:
        """For the user."""
        left = [f"left out: {name}: {reason}" for name, reason in self.left_out.items()]
        hidden = [f"secrets were hidden in {counted(len(self.hidden), 'file')}: {ABOUT} names them"]
        return [*left, *(hidden if self.hidden else [])]

    def _redacted(self, file: RunFile, scratch: Path) -> bool:
        """Write the file without its secrets to `scratch`; whether it had any."""
        changed, redacted = False, self.redaction.line
        if file.names_nothing:
            redacted = self.redaction.by_value  # names would be looked for in vain, which takes a second a MB
        if file.name.endswith(".md"):
            redacted = self.redaction.markdown
        with scratch.open("wb") as target:
            for block in file.blocks():
                if file.is_document:
                    clean = self.redaction.document(block)
                else:
                    parts = self.searched[node_of(file)].parts(block, lambda text: redacted(text) == text)
                    clean = "".join(part if is_clean else redacted(part) for part, is_clean in parts)
                changed |= clean != block
                target.write(clean.encode("utf-8", "surrogateescape"))
        return changed

    def _add_text(self, name: str, text: str) -> None:
        content = text.encode("utf-8", "surrogateescape")
        self._add(name, BytesIO(content), len(content))

    def _add(self, name: str, content: BinaryIO, size: int) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = size, 0o644
        digest = hashlib.sha256()
        while chunk := content.read(2**20):
            digest.update(chunk)
        content.seek(0, os.SEEK_SET)
        self.tar.addfile(entry, content)
        self.sums[name] = digest.hexdigest()


def _fits(name: str) -> bool:
    """Whether a header of the plainest form has room for a path: 100 bytes, and 155 for folders before these."""
    try:
        return bool(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT, "utf-8"))
    except ValueError:
        return False
