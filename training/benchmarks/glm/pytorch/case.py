"""The GLM case for the driver: model, data, loss, metric."""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property, partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.sampling import Samples
from benchmarks.glm.baselines import best_trivial_answer
from benchmarks.glm.flops import FORMULA, GlmFlops
from benchmarks.glm.shards import EVAL_FOLDER, TRAIN_FOLDER, ClozeSet, read_folder
from utils.errors import FlagPerfError

from .inputs import make_inputs
from .model import GlmConfig, GlmForMultiTokenCloze, GlmInputs, cloze_loss_sum
from .weights import load_checkpoint


class Case:
    """Reading comprehension as a cloze: which candidate fills the blank best."""

    metric: ClassVar[str] = "exact_match"
    flops_formula: ClassVar[str] = FORMULA

    def __init__(self, context: Context) -> None:
        self.context = context
        names = {field.name for field in fields(GlmConfig)}
        self.model_config = GlmConfig(**{n: v for n, v in context.settings.items() if n in names})
        self.flops = GlmFlops(
            layers=self.model_config.num_layers,
            hidden=self.model_config.hidden_size,
            vocabulary=self.model_config.vocab_size,
        )

    def build_model(self) -> nn.Module:
        """GLM with the initial checkpoint's weights, or random ones where none is configured."""
        model = GlmForMultiTokenCloze(self.model_config)
        checkpoint = self.context.settings.get("init_checkpoint")
        if checkpoint:
            load_checkpoint(model, self.context.data_dir / checkpoint)
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
        self._check_fits(questions)
        return questions

    def _dataset(self, questions: ClozeSet) -> Dataset:
        return Dataset(len(questions.clozes), partial(self._batch, questions))

    def _batch(self, questions: ClozeSet, samples: Samples) -> Batch:
        clozes, vocabulary = questions.clozes.take(samples.rows), questions.vocabulary
        ragged = self.context.device.type == "cuda"
        return Batch(
            inputs=make_inputs(clozes, start=vocabulary.start, end=vocabulary.end, ragged=ragged),
            samples=len(samples),
            tokens=clozes.tokens,
            flops=self.flops.of(clozes),
            loss_counts=(float(len(samples)),),
        )

    def _check_fits(self, questions: ClozeSet) -> None:
        """The data are of this model's vocabulary and length: a device would only say that an index is wrong."""
        config, clozes = self.model_config, questions.clozes
        longest = clozes.longest_sequence
        if questions.vocabulary.size > config.vocab_size or longest > config.max_position_embeddings:
            raise FlagPerfError(
                f"a question has {longest} tokens of a vocabulary of {questions.vocabulary.size}; the model takes "
                f"{config.max_position_embeddings} tokens and ids below {config.vocab_size}",
                where=str(self.context.data_dir),
                remedy="set vocab_size and max_position_embeddings as the data were prepared",
            )
