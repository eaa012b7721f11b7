"""What a pipeline computes, at its estimates: its Funcs, what their stages loop over and what they read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.generator.run import (
    AutoschedulerRequest,
    GeneratorFailure,
    plain_folder,
)
from halide_autotune.targets.pipeline.inspection import Inspected, run_until_ended
from halide_autotune.targets.pipeline.preparation import PipelinePreparation
from halide_autotune.targets.process.scratch_folder import scratch_folder
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from halide_autotune.targets.values.records import Source, record

_PLUGIN = Path(__file__).parent / "shape_plugin.cpp"
_AUTOSCHEDULER = "SdkDescribe"
# `step` of shape_plugin.cpp.
STEP = 192


@dataclass(frozen=True)
class LoopShape:
    """A loop of a stage before any scheduling.

    Attributes:
        name: Halide's.
        kind: 'pure', or of a reduction: 'free' if its iterations may come in any order, else 'ordered'.
        extent: at the estimates; None if that depends on data.
        is_constant: the extent is the same whatever the estimates are; never that of a pure loop.
    """

    name: str
    kind: Literal["pure", "free", "ordered"]
    extent: int | None
    is_constant: bool = False

    @property
    def is_reduction(self) -> bool:
        """Whether it is an RVar's."""
        return self.kind != "pure"


@dataclass(frozen=True)
class ReadDimension:
    """How a dimension of what is read follows the loops of the stage that reads it.

    Attributes:
        slopes: by loop, how far 192 steps of it move the index; None if data or something not linear decides.
        width: the distance of the furthest indices that one point reads, plus one; None if that is not fixed.
    """

    slopes: Mapping[str, int] | None
    width: int | None

    def follows(self, loop: str) -> bool:
        """Whether the index moves with the loop, step by step."""
        return self.slopes is not None and self.slopes.get(loop) == STEP

    @property
    def is_of_data(self) -> bool:
        """Whether data say what is read: each lane of a vector then reads for itself."""
        return self.slopes is None and self.width is None


@dataclass(frozen=True)
class ReadShape:
    """What a stage reads of a Func or an input.

    Attributes:
        places: how many different indices one point reads.
        dimensions: of what is read.
    """

    name: str
    is_input: bool
    places: int
    dimensions: tuple[ReadDimension, ...]

    @property
    def is_of_one_point(self) -> bool:
        """Whether a point reads the same point and no other."""
        return self.places == 1 and all(
            each.slopes is not None and len(each.slopes) <= 1 and set(each.slopes.values()) <= {STEP}
            for each in self.dimensions
        )

    @property
    def halved_loops(self) -> tuple[str, ...]:
        """The loops of which two iterations read the same point, as where a picture is enlarged."""
        slopes = [each.slopes or {} for each in self.dimensions]
        return tuple(loop for of_loops in slopes for loop, slope in of_loops.items() if slope == STEP // 2)


@dataclass(frozen=True)
class StageShape:
    """A definition of a Func.

    Attributes:
        loops: the innermost first, as Halide has them before any scheduling.
        operations: how many nodes its expressions have.
        arithmetic: how many of them compute a value, and not a place that is read.
        has_floats: one of them is a float.
        is_associative: its reduction's iterations may be computed apart and merged.
        is_wrong_in_vectors: Halide's vector code for the target computes it wrongly.
        is_wrong_if_inlined: the same, or so does that of what results where narrow Funcs that it reads are inlined.
        least_lanes: of its vectors, where the target has no code for fewer.
        cases: the loops whose number chooses between values (`mux`, `c == 1`): each channel is computed in its own way.
    """

    loops: tuple[LoopShape, ...]
    reads: tuple[ReadShape, ...]
    operations: int
    has_floats: bool
    reads_itself: bool
    is_associative: bool
    arithmetic: int = 0
    is_wrong_in_vectors: bool = False
    is_wrong_if_inlined: bool = False
    least_lanes: int = 1
    cases: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """How many iterations its reduction has for each point; an unknown extent counts as one."""
        return math.prod(loop.extent or 1 for loop in self.loops if loop.is_reduction)


@dataclass(frozen=True)
class FuncShape:
    """A Func.

    Attributes:
        extents: of what is needed of it, by argument; None if that depends on data.
        value_bytes: of one value, all elements of its tuple together.
        narrowest_bytes: of the smallest element.
        bounded: the arguments whose bounds its generator promises.
        is_extern: an extern stage computes it or reads it, so it is computed at the root.
        stages: the pure definition, then the updates; of an extern Func one without loops.
        is_narrow: a narrower type than its own holds its values, and where it is inlined that makes wrong vectors.
    """

    name: str
    args: tuple[str, ...]
    extents: tuple[int | None, ...]
    is_output: bool
    is_extern: bool
    value_bytes: int
    narrowest_bytes: int
    bounded: tuple[str, ...]
    stages: tuple[StageShape, ...]
    is_narrow: bool = False

    @property
    def points(self) -> int:
        """How many points are needed of it; an unknown extent counts as one."""
        points = 1
        for extent in self.extents:
            points *= extent or 1
        return points

    @property
    def sum_steps(self) -> int:
        """How many steps a point's own sum has: the most of its updates. 0 for a scan, or where data say what is added
        to, and without an update.
        """
        updates = self.stages[1:]
        if not all({*self.args} <= {loop.name for loop in stage.loops} for stage in updates):
            return 0
        return max((stage.steps for stage in updates), default=0)


@dataclass(frozen=True)
class PipelineShape:
    """A pipeline without its schedule.

    Attributes:
        vector_bytes: of the target's vectors.
        vector_registers: how many of them a core has.
        funcs: producers first; `Pipeline::get_func` counts in this order.
        has_float_vectors: the target can compute with vectors of floats.
    """

    vector_bytes: int
    funcs: tuple[FuncShape, ...]
    has_float_vectors: bool = True
    vector_registers: int = 16

    @cached_property
    def by_name(self) -> Mapping[str, FuncShape]:
        """The Funcs by Halide's names."""
        return {func.name: func for func in self.funcs}

    @cached_property
    def has_floats(self) -> bool:
        """Whether it computes with floats."""
        return any(stage.has_floats for func in self.funcs for stage in func.stages)

    @cached_property
    def least_lanes(self) -> int:
        """The most that vectors of one of its stages must have."""
        return max((stage.least_lanes for func in self.funcs for stage in func.stages), default=1)

    @cached_property
    def has_wrong_vectors(self) -> bool:
        """Whether some of its schedules have vectors that the target cannot, or does not, compute rightly."""
        of_stages = any(stage.is_wrong_if_inlined for func in self.funcs for stage in func.stages)
        return of_stages or (self.has_floats and not self.has_float_vectors)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The Funcs' places."""
        return {func.name: place for place, func in enumerate(self.funcs)}


def describe_pipeline(
    inspected: Inspected, preparation: PipelinePreparation, compiler: HostCppCompiler
) -> PipelineShape | GeneratorFailure:
    """Describe the pipeline that autoschedulers get; nothing is compiled.

    Raises:
        GeneratorError: the description is damaged.
        ToolchainError: no C++ compiler is installed.
    """
    plugin = compiler.build_plugin(_PLUGIN)
    with scratch_folder("shape") as scratch, plain_folder(scratch) as folder:
        written = folder / "shape.json"
        describing = AutoschedulerRequest(_AUTOSCHEDULER, (plugin,), {"describe_to": str(written)})
        result = run_until_ended(inspected, folder, preparation.before(describing))
        if written.is_file():
            return read_shape(written)
        assert isinstance(result, GeneratorFailure), "the plug-in ends the generator"
        return result


def read_shape(file: Path) -> PipelineShape:
    """Read a description.

    Raises:
        GeneratorError: it is damaged.
    """
    source = Source(file, GeneratorError)
    return source.check(record(PipelineShape), source.json(source.read(file)))
