"""What a run found for one argument set, whatever it is: with its times and options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from halide_autotune.autotune_loop.shipping.recorded_facts import RecordedFacts
from halide_autotune.autotune_loop.specification.objective import Objective
from halide_autotune.autotune_loop.specification.tuning_task import TuningTask, published_names
from halide_autotune.autotune_loop.store.run_record import RunRecord
from halide_autotune.devices.timing.measure_settings import KernelInputs


@dataclass(frozen=True)
class RunWinner:
    """The winner of one argument set of a run.

    Attributes:
        folder: of the run.
        index: of its task among the run's.
        path: its file among the run's samples.
    """

    folder: Path
    record: RunRecord
    index: int
    facts: RecordedFacts
    path: Path

    @property
    def task(self) -> TuningTask:
        """What was tuned."""
        return self.record.spec.tasks[self.index]

    @property
    def parameters(self) -> dict[str, str]:
        """All that the generator is given: those of the argument set, and the tuned ones."""
        return {**self.task.parameters, **self.facts.published.parameters}

    @property
    def name(self) -> str:
        """Of best.<name>.schedule.h; a C identifier."""
        return published_names(self.record.spec.tasks)[self.index]

    @property
    def generator_sha256(self) -> str:
        """Of the generator's file, as it was tuned."""
        return self.record.made_with.generator_sha256[self.index]

    @property
    def profile_name(self) -> str:
        """The profile that it was tuned for."""
        return self.record.spec.profile.name

    @property
    def inputs(self) -> KernelInputs:
        """What it was timed with; the user's own data is left out."""
        return replace(self.record.spec.options.inputs, files={})

    @property
    def objective(self) -> Objective:
        """What it is good at, where there are several devices."""
        return self.record.spec.options.play_off.objective
