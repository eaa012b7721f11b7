"""What a pipeline has to compute at least, and how much arithmetic each Func of a schedule does."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from halide_autotune.devices.timing.func_counts import FuncCounts
from halide_autotune.targets.pipeline.shape import FuncShape, PipelineShape, StageShape


@dataclass(frozen=True)
class PipelineWork:
    """The work of one schedule's Funcs.

    Attributes:
        shape: of the pipeline, at its estimates.
        counted: what was counted; Funcs that are not in it are inlined.
    """

    shape: PipelineShape
    counted: Sequence[FuncCounts]

    def needed_points(self, name: str) -> int | None:
        """How many points of a Func, those of its updates included, a call computes if none is computed twice.

        None if that depends on data, or if the call was of another size than the estimates.
        """
        func = self.shape.by_name.get(name)
        if func is None or not self._is_of_estimates:
            return None
        points = [_points(func, stage) for stage in func.stages]
        return None if None in points else sum(each for each in points if each is not None)

    def operations(self, counts: FuncCounts) -> float | None:
        """The arithmetic that a call does for a Func, with what is inlined into it."""
        func = self.shape.by_name.get(counts.name)
        points = [] if func is None else [_points(func, stage) for stage in func.stages]
        whole = sum(each for each in points if each is not None)
        if func is None or None in points or not whole:
            return None
        inlined = {each.name for each in self.shape.funcs} - {each.name for each in self.counted}
        stages = zip(points, func.stages, strict=True)
        done = sum(each * self._of_point(stage, inlined) for each, stage in stages if each is not None)
        return counts.points * done / whole

    @property
    def _is_of_estimates(self) -> bool:
        extents = {counts.name: counts.extents for counts in self.counted}
        outputs = [func for func in self.shape.funcs if func.is_output]
        return all(extents.get(func.name, func.extents) == func.extents for func in outputs)

    def _of_point(self, stage: StageShape, inlined: Collection[str]) -> float:
        """What one point of a stage takes."""
        done = float(stage.arithmetic)
        for read in stage.reads:
            if read.name in inlined:
                done += read.places * self._of_point(self.shape.by_name[read.name].stages[0], inlined)
        return done


def _points(func: FuncShape, stage: StageShape) -> int | None:
    """How often a stage is computed; the loops of a pure definition are the Func's own extents."""
    extents = [loop.extent for loop in stage.loops]
    return None if None in extents or None in func.extents else math.prod(each or 0 for each in extents)
