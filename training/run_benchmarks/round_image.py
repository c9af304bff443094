"""A round's image: the same on every host, or the round does not start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from run_benchmarks.failures import StageFailed, failure_on
from run_benchmarks.hosts.base import Host
from run_benchmarks.images.build import BuildSite, build_name
from run_benchmarks.images.files import ImageFiles
from run_benchmarks.images.layers import ImagePlan, plan_image
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from run_benchmarks.stages.image import ImageStage
from run_benchmarks.stages.image_files import ImageFileStage
from run_benchmarks.transports import LOCALHOST
from utils.errors import FlagPerfError
from utils.records import Stage


async def provide_image(session: Session, state: RoundState, hosts: Sequence[Host]) -> None:
    """See that every host has the image of the round's case, and note in `state` which it is; nothing without images.

    Raises:
        StageFailed: it was not built, did not reach a host, or is not the same everywhere.
    """
    if session.images is None:
        return
    image = plan_image(session.plan, state.case)
    state.tag = image.tag
    try:
        images = await _stage(session, state, hosts, image).run()
        state.images = {host: image.id for host, image in images.items()}
        state.image_digests = {host: image.digests for host, image in images.items()}
    except FlagPerfError as error:
        state.note_lost(error.where, error)
        failure = failure_on(error.where, Stage.IMAGE, error)
        log = f"{state.case.settings.name}/image_build_{error.where}.log"
        built = (session.log_dir / log).is_file()
        raise StageFailed(replace(failure, file=log) if built else failure) from error


def _stage(
    session: Session, state: RoundState, hosts: Sequence[Host], image: ImagePlan
) -> ImageStage | ImageFileStage:
    run, log_dir = session.plan.run, session.log_dir / state.case.settings.name
    if isinstance(session.images, ImageFiles):
        made_of = (image, run.pip, session.tree, session.run.uid)
        return ImageFileStage(session.images, hosts, session.here, *made_of, log_dir, state.file_systems)
    assert session.images is not None  # noqa: S101 - for mypy
    transports = {host.name: host.transport for host in hosts}
    sites = {host: _build_site(session, host, image.tag) for host in transports}
    addresses = {host.name: host.address for host in hosts}
    where = (log_dir, addresses, state.file_systems)
    return ImageStage(session.images, transports, sites, image, run.pip, run.image_distribution, *where)


def _build_site(session: Session, host: str, tag: str) -> BuildSite:
    return BuildSite(
        tree=session.paths.tree,
        work=session.paths.work,
        run_uid=session.run.uid,
        name=build_name(session.run.uid, host, tag),
        local=host == LOCALHOST,
    )
