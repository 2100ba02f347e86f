"""Measures of the frozen encoder while it trains: those of ``taco-glue`` that need no fine-tuning."""

from __future__ import annotations

from transformers import PreTrainedTokenizerFast

from taco_cli.config.glue import GlueConfig, TaskConfig
from taco_cli.config.schema import RunConfig
from taco_cli.encoder import Encoder
from taco_cli.evaluation import tasks
from taco_cli.evaluation.frozen import Measure, load_measure
from taco_cli.evaluation.model import Model, special_tokens
from taco_cli.machine import Machine


class ZeroShotMeasures:
    """The measures that `zero_shot.tasks` asks for, with their data read."""

    def __init__(self, measures: list[Measure], machine: Machine) -> None:
        self._measures, self._machine = measures, machine
        self._model: Model | None = None

    def __call__(self, encoder: Encoder, tokenizer: PreTrainedTokenizerFast) -> dict[str, float]:
        """Return ``val/<task>_<metric>`` in points; the encoder and torch's random state stay as they are."""
        if self._model is None or self._model.encoder is not encoder:
            self._model = Model(encoder, tokenizer, special_tokens(tokenizer), self._machine)
        training = encoder.training
        encoder.eval()
        found = {}
        with encoder.uncompiled():
            for measure in self._measures:
                for metric, value in measure.score(self._model, lambda share: None).items():
                    if tasks.DETAIL not in metric:
                        found[f"val/{measure.name}_{metric}"] = value
        encoder.train(training)
        return found


def load_zero_shot(config: RunConfig, machine: Machine) -> ZeroShotMeasures:
    """Read the data of `zero_shot.tasks`.

    Raises:
        ValueError: a task that has to be fine-tuned, or that nothing knows; files that are not there.
    """
    settings = config.zero_shot
    try:
        fine_tuned, frozen = tasks.choose(settings.tasks, TaskConfig())
    except ValueError as error:
        raise ValueError(f"zero_shot.{error}") from error
    if fine_tuned:
        name = fine_tuned[0].name
        raise ValueError(
            f"zero_shot.tasks: {name} is learnt by fine-tuning, which is done after training (`taco-glue`); "
            f"allowed are {', '.join(tasks.FROZEN)} and <task>{tasks.PROBE}, as {name}{tasks.PROBE}"
        )
    request = GlueConfig(data_dir=settings.data_dir, cache_dir=config.corpus.cache_dir)
    known = tasks.table(TaskConfig())
    return ZeroShotMeasures([load_measure(name, known, request) for name in frozen], machine)
