"""What is not given of a further size follows from what is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from halide_autotune.devices.timing.input_size import sizes_of
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.project.further_sizes import with_further_sizes
from halide_autotune.sdk.project.pipeline_facts import KnownPipeline, know_pipeline
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

GENERATOR = Path("tests/unit/sdk/project/generators/bordered.cpp").absolute()
MAIN = {"input": "256x128", "mask": "256x128", "taps": "3", "output": "256x128"}


@pytest.fixture(scope="module")
def program(halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings) -> Iterator[GeneratorProgram]:
    opened = open_generator(parse_generator(str(GENERATOR)), halide, cpp_compiler, settings.environment)
    yield opened
    opened.close()


class Sizes:
    """Completes sizes, and keeps what it tells."""

    def __init__(self, program: GeneratorProgram, compiler: HostCppCompiler) -> None:
        self.inspected = Inspected(program, "bordered", {}, "x86-64-linux-no_runtime")
        self.compiler = compiler
        self.told: list[str] = []

    def __call__(self, *texts: str, files: dict[str, Path] | None = None) -> KernelInputs:
        inputs = KernelInputs(also_sizes=texts, files=files or {})
        known = know_pipeline(self.inspected, EstimateOptions(), inputs, self.compiler)
        return with_further_sizes(self.inspected, known, known.called_with(inputs), self.compiler, self.told.append)


@pytest.fixture
def sizes(program: GeneratorProgram, cpp_compiler: HostCppCompiler) -> Sizes:
    return Sizes(program, cpp_compiler)


def test_outputs_follow_from_inputs_and_the_rest_stays(sizes: Sizes) -> None:
    main, small = sizes_of(sizes("input=64x32 mask=64x32"))
    assert dict(main.inputs.sizes) == MAIN and dict(main.inputs.scalars) == {"shift": "2"}
    assert dict(small.inputs.sizes) == {"input": "64x32", "mask": "64x32", "taps": "3", "output": "64x32"}
    assert small.label == "input=64x32 mask=64x32 output=64x32"
    assert sizes.told[0] == "Sizes that follow at input=64x32 mask=64x32: output 64x32."
    assert "may not fit a smaller size: if many fail at input=64x32 mask=64x32, give the smallest" in sizes.told[1]


def test_a_larger_size_fits(sizes: Sizes) -> None:
    sizes("input=512x128 mask=512x128")
    assert sizes.told == ["Sizes that follow at input=512x128 mask=512x128: output 512x128."]


def test_inputs_follow_from_an_output_alone(sizes: Sizes) -> None:
    _, small = sizes_of(sizes("output=64x32"))
    assert dict(small.inputs.sizes) == {"input": "64x32", "mask": "64x32", "taps": "3", "output": "64x32"}


def test_a_value_alone_changes_no_size(sizes: Sizes) -> None:
    main, other = sizes_of(sizes("shift=3"))
    assert dict(other.inputs.sizes) == MAIN and dict(other.inputs.scalars) == {"shift": "3"}
    assert (main.label, other.label) == ("shift=2", "shift=3") and sizes.told == []


def test_an_input_from_a_file_stays_unless_it_has_another_size(sizes: Sizes, tmp_path: Path) -> None:
    numpy.save(tmp_path / "taps.npy", numpy.ones(3, numpy.int32))
    numpy.save(tmp_path / "photo.npy", numpy.ones((128, 256), numpy.uint8))
    files = {"taps": tmp_path / "taps.npy", "input": tmp_path / "photo.npy"}
    _, small = sizes_of(sizes("input=64x32 mask=64x32", files=files))
    assert dict(small.inputs.files) == {"taps": tmp_path / "taps.npy"}
    assert dict(small.inputs.sizes) == {"input": "64x32", "mask": "64x32", "output": "64x32"}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("inptu=64x32",), "--also-size inptu=64x32: the generator has no argument 'inptu'; the nearest is 'input'."),
        (("input=64x32x3",), "--also-size input=64x32x3: input is a buffer of 2 dimensions."),
        (("shift=64x32",), "--also-size shift=64x32: shift is a scalar."),
        (("mask=64x32 output=65x32",), "--also-size mask=64x32 is too small: the outputs need 65x32 of it."),
        (("input=256x128",), "--also-size 'input=256x128' is a size that is tuned for already."),
        (("output=64x32", "output=64x32"), "--also-size 'output=64x32' is a size that is tuned for already."),
    ],
)
def test_what_does_not_fit_is_one_sentence(sizes: Sizes, texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        sizes(*texts)
    assert caught.value.message == message and caught.value.next_step


def test_without_a_compiler_what_is_given_is_all_that_changes(sizes: Sizes) -> None:
    inputs = KernelInputs(also_sizes=("input=64x32",))
    assert with_further_sizes(sizes.inspected, KnownPipeline(), inputs, sizes.compiler, sizes.told.append) == inputs
