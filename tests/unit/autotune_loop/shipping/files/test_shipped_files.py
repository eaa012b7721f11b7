"""What `sdk ship` writes, compiled into the generators it was made for and into what becomes of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.targets.generator.preload import Preload
from halide_autotune.targets.generator.program import GeneratorProgram, open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.generator.run import AutoschedulerRequest, GeneratedFiles, GeneratorRequest, run_generator
from halide_autotune.targets.process.limited_process import ProcessLimits, ProcessOutcome
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.schedule.header import schedule_name
from halide_autotune.targets.schedule.plugins import schedule_autoscheduler
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.tuned_run_folder import LIMITS
from tests.unit.autotune_loop.shipping.conftest import ShippedProduct

AS_TUNED, RENAMED, CHANGED, LONGER, OTHER_DOMAIN, SWAPPED, OTHER_UNNAMED_NUMBERS = map(str, range(7))
TARGETS = {name: load_profile(name).halide_target for name in ("x86-64", "arm64")}


@pytest.fixture(params=["product.cpp", "product.py"], scope="module")
def product(request: pytest.FixtureRequest, ship_product: Callable[[str], ShippedProduct]) -> ShippedProduct:
    return ship_product(request.param)


@pytest.fixture(scope="module")
def program(product: ShippedProduct, sources: GeneratorSources) -> Iterator[GeneratorProgram]:
    """The product, built or imported anew now that its schedules lie beside it."""
    reference = parse_generator(str(product.generator))
    with contextlib.closing(
        open_generator(reference, sources.halide, sources.compiler, sources.environment)
    ) as program:
        yield program


def run(
    program: GeneratorProgram,
    folder: Path,
    variant: str,
    target: str = TARGETS["x86-64"],
    autoscheduler: AutoschedulerRequest | None = None,
    **parameters: str,
) -> tuple[bytes, str]:
    """The object, empty where the generator failed, and what it printed."""
    log: list[str] = []

    class Listening:
        names, sha256, parameters = program.names, program.sha256, program.parameters

        def run(
            self,
            arguments: Sequence[str],
            limits: ProcessLimits,
            stop: StopSignal | None = None,
            preload: Preload | None = None,
        ) -> ProcessOutcome:
            outcome = program.run(arguments, limits, stop)
            log.append(outcome.log)
            return outcome

        def close(self) -> None: ...

    request = GeneratorRequest(
        "product",
        "product",
        "product",
        folder,
        ("object",),
        target + "-no_runtime",
        {"variant": variant, **parameters},
        autoscheduler,
    )
    result = run_generator(Listening(), request, LIMITS)
    return (result.files["object"].read_bytes() if isinstance(result, GeneratedFiles) else b""), log[0]


@pytest.mark.parametrize("target", TARGETS)
def test_a_shipped_schedule_gives_the_code_of_the_run(
    product: ShippedProduct, program: GeneratorProgram, cpp_compiler: HostCppCompiler, target: str, tmp_path: Path
) -> None:
    run_folder = next(folder for folder in product.runs if folder.name == target)
    best = (run_folder / "samples" / "best.product.schedule.h").read_text()
    plugin = schedule_autoscheduler(best, cpp_compiler)
    by_plugin, _ = run(program, tmp_path, AS_TUNED, TARGETS[target], plugin)
    shipped, log = run(program, tmp_path, AS_TUNED, TARGETS[target])
    assert shipped and shipped == by_plugin
    assert "arning" not in log
    # More features, other words that are not the hardware's, another system: the nearest schedule still.
    assert run(program, tmp_path, AS_TUNED, TARGETS[target] + "-no_asserts")[0]


def test_numbers_of_names_do_not_matter(program: GeneratorProgram, tmp_path: Path) -> None:
    shipped, log = run(program, tmp_path, OTHER_UNNAMED_NUMBERS)
    assert shipped and "arning" not in log


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        (RENAMED, r"product_x86_64 was made for another pipeline: Func \d is now '\w+', was '\w+'. Tune again"),
        (LONGER, r"Func \d is now '\w+', was '\w+'; there are 10 Funcs, were 9. Tune again"),
        (SWAPPED, r"Func \d 'part' is defined as Func \d 'part' was: their order has changed. Tune again"),
    ],
)
def test_another_pipeline_is_refused(program: GeneratorProgram, tmp_path: Path, variant: str, words: str) -> None:
    code, log = run(program, tmp_path, variant)
    assert code == b"" and re.search(words, log), log


def test_a_changed_definition_is_told(product: ShippedProduct, program: GeneratorProgram, tmp_path: Path) -> None:
    code, log = run(program, tmp_path, CHANGED)
    assert code, log
    told = (
        "The algorithm has changed since the schedule product_x86_64 was made: Func 3 'across' is defined differently"
    )
    assert told in log
    code, log = run(program, tmp_path, OTHER_DOMAIN)
    assert code
    # Halide's Python does not tell what a reduction runs over.
    assert ("'total' is defined differently" in log) == (product.generator.suffix == ".cpp")


def test_a_target_without_a_schedule_is_refused(program: GeneratorProgram, tmp_path: Path) -> None:
    code, log = run(program, tmp_path, AS_TUNED, "riscv-64-linux")
    assert code == b"" and "There is no schedule of product for riscv-64-linux" in log
    assert "there are some for arm-64-linux, x86-64-linux" in log
    # Without its vector features the schedule is for a better processor.
    code, log = run(program, tmp_path, AS_TUNED, "x86-64-linux")
    assert code == b"" and "There is no schedule of product for x86-64-linux" in log


@pytest.mark.parametrize("product", ["product.py"], indirect=True)
def test_python_can_be_strict(program: GeneratorProgram, tmp_path: Path) -> None:
    code, log = run(program, tmp_path, CHANGED, strict="true")
    assert code == b"" and "'across' is defined differently" in log


@pytest.mark.parametrize("product", ["product.cpp"], indirect=True)
@pytest.mark.parametrize(
    ("edit", "stops", "words"),
    [
        (lambda text: "#define HALIDE_SDK_STRICT\n" + text, True, "'across' is defined differently"),
        (
            lambda text: text.replace('halide_version = "21.', 'halide_version = "20.'),
            False,
            "was made with Halide 20.0.0, and this is Halide 21.0.0: time it again",
        ),
    ],
)
def test_options_and_other_versions_of_halide(
    product: ShippedProduct,
    program: GeneratorProgram,
    cpp_compiler: HostCppCompiler,
    tmp_path: Path,
    edit: Callable[[str], str],
    stops: bool,
    words: str,
) -> None:
    """A target's own header needs no other file, so it is applied by our plug-in, too."""
    text = (product.folder / "product.x86-64.schedule.h").read_text()
    assert schedule_name(text) == "product_x86_64"
    code, log = run(program, tmp_path, CHANGED, TARGETS["x86-64"], schedule_autoscheduler(edit(text), cpp_compiler))
    assert (code == b"") == stops and words in log, log
