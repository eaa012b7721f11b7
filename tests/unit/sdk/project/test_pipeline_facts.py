"""Every argument gets a size or a value, or the user is told what to give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy
import pytest

from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.project.pipeline_facts import KnownPipeline, know_pipeline
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler

pytestmark = pytest.mark.toolchain

GENERATOR = Path("tests/unit/targets/pipeline/generators/sizes.cpp").absolute()


@pytest.fixture(scope="module")
def program(halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings) -> Iterator[GeneratorProgram]:
    opened = open_generator(parse_generator(str(GENERATOR)), halide, cpp_compiler, settings.environment)
    yield opened
    opened.close()


class Knows:
    def __init__(self, program: GeneratorProgram, compiler: HostCppCompiler) -> None:
        self.inspected = Inspected(program, "sizes", {}, "x86-64-linux-no_runtime")
        self.compiler = compiler

    def __call__(
        self, given: Mapping[str, str], inputs: KernelInputs | None = None, *, use_defaults: bool = False
    ) -> KnownPipeline:
        asked = EstimateOptions(given, use_defaults=use_defaults)
        return know_pipeline(self.inspected, asked, inputs or KernelInputs(), self.compiler)


@pytest.fixture
def knows(program: GeneratorProgram, cpp_compiler: HostCppCompiler) -> Knows:
    return Knows(program, cpp_compiler)


def test_what_is_missing_is_proposed_in_one_message(knows: Knows) -> None:
    with pytest.raises(GeneratorError) as caught:
        knows({})
    assert (
        caught.value.message
        == "Generator sizes gives no estimate for gain and output, so there is no size to tune for."
    )
    assert caught.value.next_step == (
        "Give sizes as your users have them, such as --estimate gain=1 --estimate output=1920x1080, or use"
        " --default-estimates for just these."
    )


def test_the_proposal_can_be_accepted(knows: Knows) -> None:
    known = knows({}, use_defaults=True)
    assert known.notices("sizes") == [
        "Estimates that follow from the others: input 1923x1081@-1x0.",
        "Estimates by default: gain 1, output 1920x1080.",
    ]
    assert known.estimates == {"input": "1923x1081@-1x0", "gain": "1", "radius": "2", "#0": "1920x1080"}


def test_kernels_are_called_with_what_they_do_not_tell(knows: Knows) -> None:
    known = knows({"output": "64x48", "gain": "2"})
    called = known.called_with(KernelInputs(scalars={"gain": "3"}))
    assert called.sizes == {"input": "67x49@-1x0", "output": "64x48"}
    assert called.scalars == {"gain": "3", "radius": "2"}


def test_an_input_begins_where_the_outputs_need_it_to(knows: Knows) -> None:
    known = knows({"input": "640x480", "gain": "1"})
    assert known.estimates["input"] == "640x480@-1x0"


def test_what_a_kernel_is_timed_with_says_what_to_expect(knows: Knows, tmp_path: Path) -> None:
    numpy.save(tmp_path / "photo.npy", numpy.zeros((48, 64), numpy.float32))
    known = knows({}, KernelInputs(files={"input": tmp_path / "photo.npy"}, scalars={"gain": "2"}))
    assert known.estimates["#0"] == "61x47"
    assert known.called_with(KernelInputs(files={"input": tmp_path / "photo.npy"})).sizes == {"output": "61x47"}


def test_a_raw_file_gives_estimates_and_has_the_type_of_its_argument(knows: Knows, tmp_path: Path) -> None:
    (tmp_path / "photo.raw").write_bytes(bytes(64 * 48 * 4))
    inputs = KernelInputs(files={"input": tmp_path / "photo.raw:64x48"}, scalars={"gain": "2"})
    known = knows({}, inputs)
    assert known.estimates["#0"] == "61x47"
    assert known.typed(inputs).files == {"input": tmp_path / "photo.raw:64x48:float32"}


def test_a_raw_file_of_another_size_is_one_sentence(knows: Knows, tmp_path: Path) -> None:
    (tmp_path / "photo.raw").write_bytes(bytes(64 * 48))
    inputs = KernelInputs(files={"input": tmp_path / "photo.raw:64x48"}, scalars={"gain": "2"})
    with pytest.raises(UsageError) as caught:
        knows({}, inputs).typed(inputs)
    assert caught.value.message == (
        f"{tmp_path / 'photo.raw'} has 3072 bytes, but 64x48 elements of float32 take 12288."
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inptu": "64x48"}, "--estimate inptu=64x48: the generator has no argument 'inptu'; the nearest is 'input'."),
        ({"input": "64x48x3"}, "--estimate input=64x48x3: input is a buffer of 2 dimensions."),
        ({"input": "1.5"}, "--estimate input=1.5: input is a buffer of 2 dimensions."),
        ({"gain": "64x48"}, "--estimate gain=64x48: gain is a scalar."),
        (
            {"input": "64x48", "output": "64x48", "gain": "1"},
            "--estimate input=64x48 is too small: the outputs need 67x49@-1x0 of it.",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(knows: Knows, given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        knows(given)
    assert caught.value.message == message
