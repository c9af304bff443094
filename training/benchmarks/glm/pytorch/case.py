"""The GLM case for the driver: model, data, loss, metric."""

from __future__ import annotations

from functools import cached_property, partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from benchmarks.common.pytorch.transformer import load_checkpoint
from benchmarks.common.shape import check_fits, configured
from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.sampling import Samples
from benchmarks.glm.baselines import best_trivial_answer
from benchmarks.glm.flops import FORMULA, training_flops
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER, ClozeSet, read_folder

from .inputs import make_inputs
from .model import GlmConfig, GlmForMultiTokenCloze, GlmInputs, cloze_loss_sum


class Case:
    """Reading comprehension as a cloze: which candidate fills the blank best."""

    metric: ClassVar[str] = "exact_match"
    flops_formula: ClassVar[str] = FORMULA

    def __init__(self, context: Context) -> None:
        self.context = context
        self.model_config = configured(GlmConfig, context.settings)

    def build_model(self) -> nn.Module:
        """GLM with the initial checkpoint's weights, or random ones where none is configured."""
        model = GlmForMultiTokenCloze(self.model_config)
        checkpoint = self.context.settings.get("init_checkpoint")
        if checkpoint:
            load_checkpoint(model, self.context.data_dir / checkpoint, case="glm")
        return model

    def training_data(self) -> Dataset:
        """The training questions."""
        return self._dataset(self._read(TRAIN_FOLDER))

    def evaluation_data(self) -> Dataset:
        """The questions of the evaluation set."""
        return self._dataset(self._evaluation_questions)

    def baseline(self) -> float:
        """Exact match of the best answer that needs no understanding (`benchmarks.glm.baselines`)."""
        return best_trivial_answer(self._evaluation_questions.clozes)

    def loss(self, model: nn.Module, inputs: GlmInputs) -> Tensor:
        """(1,): cross entropy over the candidates, summed over questions."""
        return cloze_loss_sum(model(inputs), inputs)

    def evaluate(self, model: nn.Module, inputs: GlmInputs) -> Tensor:
        """(4,) float64: exact match and F1 of the chosen candidates, questions, loss."""
        scores: Tensor = model(inputs)
        chosen = scores.argmax(dim=1, keepdim=True)
        earned = [of.gather(1, chosen).sum() for of in (inputs.exact_match, inputs.f1)]
        questions = torch.full_like(earned[0], len(scores))
        return torch.stack([*earned, questions, cloze_loss_sum(scores, inputs)[0]]).double()

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """Means over questions; the loss in nats, of the first right candidate where there are several."""
        exact, f1, questions, loss = sums
        return {"exact_match": exact / questions, "f1": f1 / questions, "eval_loss": loss / questions}

    @cached_property
    def _evaluation_questions(self) -> ClozeSet:
        return self._read(EVAL_FOLDER)

    def _read(self, folder: str) -> ClozeSet:
        questions = read_folder(self.context.data_dir, folder)
        check_fits(
            self.model_config,
            longest=questions.clozes.longest_sequence,
            largest_id=questions.vocabulary.size - 1,
            data_dir=self.context.data_dir,
        )
        return questions

    def _dataset(self, questions: ClozeSet) -> Dataset:
        return Dataset(len(questions.clozes), partial(self._batch, questions))

    def _batch(self, questions: ClozeSet, samples: Samples) -> Batch:
        clozes, vocabulary = questions.clozes.take(samples.rows), questions.vocabulary
        ragged = self.context.ragged_attention
        return Batch(
            inputs=make_inputs(clozes, start=vocabulary.start, end=vocabulary.end, ragged=ragged),
            samples=len(samples),
            tokens=clozes.tokens,
            flops=training_flops(self.model_config, clozes),
            loss_counts=(float(len(samples)),),
        )
