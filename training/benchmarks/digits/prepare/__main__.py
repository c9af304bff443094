"""Write scikit-learn's bundled digits as a data set: python3 -m benchmarks.digits.prepare --out DIR"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.preparation.packages import packages_beside

with packages_beside(__file__):
    import numpy as np
    from sklearn.datasets import load_digits

    from benchmarks.common.preparation.command import Preparation
    from benchmarks.common.preparation.partial import Done, Facts, PartialDataset
    from benchmarks.common.preparation.recipe import RecipeParameters, parameter
    from benchmarks.common.preparation.workers import Workers


@dataclass(frozen=True)
class Parameters(RecipeParameters):
    held_out: int = parameter(360, "images held out: the last, mostly written by other people", 1, 1796)


class DigitsPreparation(Preparation[Parameters]):
    model, tool, about, usual = "digits", "1", "Write scikit-learn's digits as a data set.", Parameters()

    def make(
        self, inputs: Parameters, partial: PartialDataset, pool: Workers
    ) -> tuple[Facts, Sequence[Done]]:
        def write(paths: Sequence[Path]) -> Facts:
            """Two tables of bytes, a row an image: its 64 pixels (0 to 16), then its label."""
            digits = load_digits()
            table = np.column_stack([digits.data, digits.target]).astype("uint8")
            np.save(paths[0], table[: -inputs.held_out])
            np.save(paths[1], table[-inputs.held_out :])
            return {}

        outputs = [partial.data / "training.npy", partial.data / "held_out.npy"]
        return {}, [partial.step("digits", outputs, write)]


if __name__ == "__main__":
    sys.exit(DigitsPreparation().main())
