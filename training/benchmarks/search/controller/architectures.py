"""What a proposal is worth, computed from the architecture itself and not from what its worker says of it."""

from __future__ import annotations

import hashlib

import msgspec

from benchmarks.search.architecture import Architecture, as_json, parse
from benchmarks.search.controller.proposals import Facts
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.description import description_of
from benchmarks.search.hyperparameters import Space, trained
from benchmarks.search.morphism import Edit, apply
from benchmarks.search.operations import operations_of
from benchmarks.search.protocol import WRONG, Proposed
from utils.errors import FlagPerfError
from utils.text_files import one_line


def checked(proposed: Proposed, parent: Proposed | None, space: Space) -> tuple[Proposed, Facts]:
    """The proposal, its architecture and edits written as this code writes them, and what is to be known of it.

    It may take a second, and so is not for the thread that answers.

    Raises:
        RefuseError: it is no architecture, not the parent's with those edits, or none for this search.
    """
    try:
        architecture = parse(bytes(proposed.architecture))
        edits = [msgspec.json.decode(bytes(edit), type=Edit) for edit in proposed.edits]
        origin = parse(bytes(parent.architecture)) if parent else space.start
        _refuse_other_child(origin, edits, architecture)
        network = trained(architecture, proposed.hyperparameters)
        _refuse_other_task(network, proposed, space)
        operations = operations_of(network)
    except (FlagPerfError, msgspec.MsgspecError, RecursionError) as error:
        raise RefuseError(WRONG, one_line(str(error))) from error
    texts = tuple(str(edit) for edit in edits)
    facts = Facts(
        identity_of(architecture),
        len(network.layers),
        network.parameters,
        operations.forward,
        operations.training,
        texts,
    )
    written = tuple(msgspec.Raw(msgspec.json.encode(edit)) for edit in edits)
    return msgspec.structs.replace(
        proposed, edits=written, architecture=msgspec.Raw(as_json(architecture))
    ), facts


def identity_of(architecture: Architecture) -> str:
    """The same text for all architectures at no distance from each other."""
    return hashlib.sha256(msgspec.json.encode(description_of(architecture))).hexdigest()


def _refuse_other_child(origin: Architecture, edits: list[Edit], child: Architecture) -> None:
    for edit in edits:
        origin = apply(origin, edit)
    if origin != child:
        raise RefuseError(WRONG, "the architecture is not what the edits make of its parent")


def _refuse_other_task(architecture: Architecture, proposed: Proposed, space: Space) -> None:
    start = space.start
    if (architecture.images, architecture.classes) != (start.images, start.classes):
        raise RefuseError(
            WRONG, "the architecture is for other images or classes than the search's data have"
        )
    if len(architecture.layers) > space.limits.layers:
        raise RefuseError(WRONG, f"{len(architecture.layers)} layers, {space.limits.layers} at most")
    if architecture.parameters > space.most_parameters:
        raise RefuseError(WRONG, f"{architecture.parameters} parameters, {space.most_parameters} at most")
    if proposed.hyperparameters.batch_size not in space.batch_sizes:
        raise RefuseError(WRONG, f"no batch size of this search: {proposed.hyperparameters.batch_size}")
