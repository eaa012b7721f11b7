"""Lowers schedules of one pipeline on all cores, each once, where there is no run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from halide_autotune.autotune_loop.draft.model import Draft
from halide_autotune.autotune_loop.lowered.lowered_schedule import LoweredSchedule, lowered_schedule
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.lowering.loop_nest import LoopNest
from halide_autotune.targets.lowering.lower import Refused, lower_schedules
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

# Of processor time, for one schedule.
_LIMIT_S = 60.0
_PER_WANTED = 3


@dataclass
class LoweredOnce:
    """Lowers schedules of a pipeline.

    Attributes:
        text_of: a schedule as JSON.
        cores: that parallel loops run on.
        known: what each one is lowered to, by its JSON, in the order in which they came; why not, where Halide
            refuses it.
    """

    inspected: Inspected
    preparation: PipelinePreparation
    compiler: HostCppCompiler
    text_of: Callable[[Draft], str]
    cores: int
    known: dict[str, LoweredSchedule | Refused] = field(default_factory=dict)

    def affordable(self, wanted: int) -> int:
        """See `Lowering.affordable`."""
        return _PER_WANTED * wanted

    def lowered(self, drafts: Sequence[Draft]) -> list[LoweredSchedule | None]:
        """See `Lowering.lowered`.

        Raises:
            GeneratorError: the generator fails.
            ToolchainError: no C++ compiler is installed.
        """
        texts = [self.text_of(draft) for draft in drafts]
        unknown = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(unknown, self._lower(unknown), strict=True))
        found = [self.known[text] for text in texts]
        return [None if isinstance(each, Refused) else each for each in found]

    def of(self, draft: Draft) -> LoweredSchedule | None:
        """What a schedule is lowered to; None if it was not lowered, or Halide refuses it."""
        found = self.known.get(self.text_of(draft))
        return found if isinstance(found, LoweredSchedule) else None

    @property
    def first_refusal(self) -> str:
        """Why Halide refuses the first one that it refuses; empty if it refuses none."""
        return next((each.message for each in self.known.values() if isinstance(each, Refused)), "")

    def _lower(self, texts: Sequence[str]) -> list[LoweredSchedule | Refused]:
        if not texts:
            return []
        size = -(-len(texts) // len(os.sched_getaffinity(0)))
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        stop = StopSignal()
        with ThreadPoolExecutor(len(parts)) as pool:
            try:
                return [each for part in pool.map(lambda part: self._part(part, stop), parts) for each in part]
            except BaseException:
                stop.set()  # else an interrupt would wait for the generator
                raise

    def _part(self, texts: Sequence[str], stop: StopSignal) -> list[LoweredSchedule | Refused]:
        found = lower_schedules(self.inspected, self.preparation, texts, _LIMIT_S, self.compiler, stop)
        if isinstance(found, GeneratorFailure):
            name = self.inspected.generator_name
            raise GeneratorError(f"The schedules of generator {name} cannot be lowered: {found.message}")
        return [lowered_schedule(each, self.cores) if isinstance(each, LoopNest) else each for each in found.nests]
