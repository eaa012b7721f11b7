"""What is read is described as it follows the loops, whatever Halide has made of the index."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halide_autotune.targets.generator.program import GeneratorProgram
from halide_autotune.targets.generator.run import GeneratorFailure
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.pipeline.preparation import PipelinePreparation, build_preparation_plugin
from halide_autotune.targets.pipeline.shape import PipelineShape, ReadShape, describe_pipeline
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

TARGET = "x86-64-linux-sse41-avx-avx2-fma-no_runtime"


@pytest.fixture
def shape(open_program: Callable[[str], GeneratorProgram], cpp_compiler: HostCppCompiler) -> PipelineShape:
    preparation = PipelinePreparation(build_preparation_plugin(cpp_compiler))
    found = describe_pipeline(Inspected(open_program("indices.cpp"), "indices", {}, TARGET), preparation, cpp_compiler)
    assert not isinstance(found, GeneratorFailure), found.message
    return found


def read_by(shape: PipelineShape, reader: str, name: str) -> ReadShape:
    return next(read for read in shape.by_name[reader].stages[0].reads if read.name == name)


def test_an_index_of_data_that_is_used_twice_is_still_of_data(shape: PipelineShape) -> None:
    row, column = read_by(shape, "by_data", "table").dimensions
    assert (row.slopes, row.width) == (None, None)
    assert (column.slopes, column.width) == ({"x": 192}, 1)


def test_places_that_rounding_sets_apart_stay_together(shape: PipelineShape) -> None:
    (place,) = read_by(shape, "enlarged", "by_data").dimensions
    assert (place.slopes, place.width) == ({"x": 96}, 2)
