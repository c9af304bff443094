"""`run.py export`: a run in one archive, or in the form of MLPerf, ais-bench or AIPerf; its folder is only read."""

from __future__ import annotations

import argparse
from pathlib import Path

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import put
from run_benchmarks.verbs import options

NAME = "export"
HELP = "export a run: an archive to check or repeat it, MLPerf's log, or the results of ais-bench or AIPerf"
ARCHIVE, MLPERF, AIS_BENCH, AIPERF = "archive", "mlperf", "ais-bench", "aiperf"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, in which form, and where to."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument(
        "run", metavar="RUN", type=options.name_of, help="its result folder, its name, or `latest`"
    )
    parser.add_argument("--format", choices=(ARCHIVE, MLPERF, AIS_BENCH, AIPERF), default=ARCHIVE)
    parser.add_argument(
        "--output",
        type=options.path_of,
        metavar="PATH",
        help="a new file (archive, .tar.gz) or folder (default: RUN.tar.gz, RUN-mlperf, RUN-ais-bench, RUN-aiperf "
        "beside the run)",
    )
    parser.add_argument(
        "--system",
        type=options.path_of,
        metavar="FILE",
        help="mlperf: a JSON file with what only the owner can say: submitter, system_name, status, cooling, ...",
    )


def run(arguments: argparse.Namespace) -> int:
    """Export it, and say what there is to know of what was exported."""
    from run_benchmarks.journal import is_held
    from run_benchmarks.names import JOURNAL
    from run_benchmarks.own_folder import check_writable
    from run_benchmarks.results.find import find_run
    from utils.errors import FlagPerfError

    folder = find_run(arguments.run, options.log_path_of(arguments))
    if arguments.system and arguments.format != MLPERF:
        raise FlagPerfError(f"is for --format {MLPERF} alone", where="--system")
    if is_held(folder / JOURNAL):
        raise FlagPerfError("this run still goes on", where=str(folder), remedy="export it when it has ended")
    endings = {ARCHIVE: ".tar.gz", MLPERF: "-mlperf", AIS_BENCH: "-ais-bench", AIPERF: "-aiperf"}
    if not arguments.output:
        check_writable(folder, "name another place with --output")
    output: Path = arguments.output or _beside(folder.resolve(), endings[arguments.format])
    notes = _export(arguments, folder, output)
    put("\n".join([*(f"- {note}" for note in notes), f"{arguments.format}: {output.absolute()}"]))
    return ExitCode.SUCCESS


def _beside(folder: Path, ending: str) -> Path:
    """Where results lie: what lay in `training/` would be taken for code, and go to every host."""
    return folder.with_name(f"{folder.name}{ending}")


def _export(arguments: argparse.Namespace, folder: Path, output: Path) -> list[str]:
    if arguments.format == MLPERF:
        from run_benchmarks.exports.mlperf import export_mlperf
        from run_benchmarks.exports.system_description import read_owners_words

        return export_mlperf(
            folder, output, read_owners_words(arguments.system), options.secrets_of(arguments)
        )
    if arguments.format == AIS_BENCH:
        from run_benchmarks.exports.ais_bench import export_ais_bench

        return export_ais_bench(folder, output, options.secrets_of(arguments))
    from run_benchmarks.exports.archive import export_archive
    from run_benchmarks.exports.redaction import secrets_here

    secrets = secrets_here(arguments.config, options.TRAINING_DIR)
    if arguments.format == AIPERF:
        from run_benchmarks.exports.aiperf import export_aiperf

        return export_aiperf(folder, output, secrets, options.TRAINING_DIR)
    return export_archive(folder, output, secrets, options.TRAINING_DIR)
