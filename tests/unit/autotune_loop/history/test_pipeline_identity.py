"""By what equal pipelines are known."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.history.pipeline_identity import pipeline_sha256
from halide_autotune.targets.pipeline.shape import PipelineShape
from tests.drafted_pipelines import recorded

SHAPE = recorded("corner_detector").shape


def changed(**values: object) -> PipelineShape:
    """The pipeline, its last Func with other values."""
    *others, last = SHAPE.funcs
    return replace(SHAPE, funcs=(*others, replace(last, **values)))  # type: ignore[arg-type]


def test_pipelines_differ_by_names_sizes_and_reads() -> None:
    last = SHAPE.funcs[-1]
    stage = replace(last.stages[0], reads=last.stages[0].reads[1:])
    several = [
        SHAPE,
        changed(name="other"),
        changed(extents=(*last.extents[:-1], 17)),
        changed(stages=(stage, *last.stages[1:])),
        recorded("separable_filter").shape,
    ]
    assert len({pipeline_sha256(shape) for shape in several}) == len(several)


def test_constants_and_targets_make_no_other_pipeline() -> None:
    stages = tuple(replace(stage, operations=stage.operations + 3) for stage in SHAPE.funcs[-1].stages)
    equal = [SHAPE, changed(stages=stages), replace(SHAPE, vector_bytes=64, has_float_vectors=False)]
    assert len({pipeline_sha256(shape) for shape in equal}) == 1


def test_the_hash_stays_from_version_to_version() -> None:
    """Whoever changes it loses everybody's history: then `_VERSION` is to be raised, and this line."""
    assert pipeline_sha256(SHAPE)[:16] == "685d91ee593d139c"
