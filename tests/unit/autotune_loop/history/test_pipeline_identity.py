"""By what equal pipelines are known."""

from __future__ import annotations

from dataclasses import replace

from halide_autotune.autotune_loop.history.pipeline_identity import identity_of
from halide_autotune.targets.pipeline.shape import PipelineShape
from tests.drafted_pipelines import recorded

SHAPE = recorded("corner_detector").shape


def changed(**values: object) -> PipelineShape:
    """The pipeline, its last Func with other values."""
    *others, last = SHAPE.funcs
    return replace(SHAPE, funcs=(*others, replace(last, **values)))  # type: ignore[arg-type]  # fields by name


def without_a_read() -> PipelineShape:
    *others, stage = SHAPE.funcs[-1].stages
    return changed(stages=(*others, replace(stage, reads=stage.reads[1:])))


def test_pipelines_differ_by_names_and_reads() -> None:
    several = [SHAPE, changed(name="other"), without_a_read(), recorded("separable_filter").shape]
    assert len({identity_of(shape).at_any_size for shape in several}) == len(several)
    assert len({identity_of(shape).as_timed for shape in several}) == len(several)


def test_sizes_make_no_other_pipeline() -> None:
    *stages, last = SHAPE.funcs[-1].stages
    first, *loops = last.loops
    larger = replace(last, loops=(replace(first, extent=17), *loops))
    other = identity_of(changed(extents=(17, 17), stages=(*stages, larger)))
    assert other.at_any_size == identity_of(SHAPE).at_any_size and other.as_timed != identity_of(SHAPE).as_timed
    # The radius of a blur is no size of a picture.
    fixed = (replace(last, loops=(replace(first, extent=extent, is_constant=True), *loops)) for extent in (3, 5))
    assert len({identity_of(changed(stages=(*stages, each))).at_any_size for each in fixed}) == 2


def test_fixed_channels_of_a_layer_are_a_size() -> None:
    *stages, last = SHAPE.funcs[-1].stages
    first, *loops = last.loops
    layers = (replace(last, loops=(replace(first, extent=extent, is_constant=True), *loops)) for extent in (64, 128))
    smaller, larger = (identity_of(changed(stages=(*stages, each))) for each in layers)
    assert smaller.at_any_size == larger.at_any_size and smaller.as_timed != larger.as_timed


def test_times_of_other_conditions_are_kept_apart() -> None:
    several = [identity_of(SHAPE, conditions) for conditions in ((), ("2 threads",), ("4 threads",))]
    assert len({one.as_timed for one in several}) == 3 and len({one.at_any_size for one in several}) == 1


def test_constants_and_targets_make_no_other_pipeline() -> None:
    stages = tuple(replace(stage, operations=stage.operations + 3) for stage in SHAPE.funcs[-1].stages)
    equal = [SHAPE, changed(stages=stages), replace(SHAPE, vector_bytes=64, has_float_vectors=False)]
    assert len({identity_of(shape) for shape in equal}) == 1


def test_the_hash_stays_from_version_to_version() -> None:
    """Whoever changes it loses everybody's history: then `_VERSION` is to be raised, and this line."""
    known = identity_of(SHAPE)
    assert (known.at_any_size[:8], known.as_timed[:8]) == ("73793232", "685d91ee")
