"""Are the tensors of an initial checkpoint those of the model? The same for every case and framework."""

from __future__ import annotations

from collections.abc import Mapping

from utils.errors import Problem, ProblemsError

Shape = tuple[int, ...]
_REMEDY = "give the checkpoint of a model whose shape is the configuration's"


def check_form(found: Mapping[str, Shape], wanted: Mapping[str, Shape], *, where: str) -> None:
    """Compare names and shapes.

    Args:
        found: of the checkpoint's tensors.
        wanted: of the model's, by the names that they have in the checkpoint.
        where: the checkpoint's file.

    Raises:
        ProblemsError: tensors are missing, not expected or of another shape: all of them.
    """
    problems = [
        Problem(where, name, "", "is not a tensor of this model", _REMEDY)
        for name in found
        if name not in wanted
    ]
    for name, shape in wanted.items():
        if name not in found:
            problems.append(Problem(where, name, "", "is missing", _REMEDY))
        elif found[name] != shape:
            message = f"has the wrong shape: {shape} is wanted"
            problems.append(Problem(where, name, str(found[name]), message, _REMEDY))
    if problems:
        raise ProblemsError(problems)
