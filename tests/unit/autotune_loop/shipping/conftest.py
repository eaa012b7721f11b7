from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.ship_runs import ShipRequest, ship_runs
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.tuned_run_folder import write_tuned_run

GENERATORS = Path(__file__).parent / "generators"
TARGETS = ("x86-64", "arm64")
SDK_VERSION = "1.2.3"


@dataclass(frozen=True)
class ShippedProduct:
    """A generator with the runs it was tuned in and the folder that was shipped from them, beside it."""

    generator: Path
    runs: tuple[Path, ...]
    folder: Path


@pytest.fixture(scope="session")
def sources(halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings) -> GeneratorSources:
    return GeneratorSources((), halide, cpp_compiler, settings.environment)


@pytest.fixture(scope="session")
def ship_product(
    sources: GeneratorSources, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], ShippedProduct]:
    """Ships product.cpp or product.py for two targets; once each."""
    made: dict[str, ShippedProduct] = {}

    def get(file_name: str) -> ShippedProduct:
        if file_name not in made:
            place = tmp_path_factory.mktemp("product")
            generator = Path(shutil.copy(GENERATORS / file_name, place))
            program = open_generator(
                parse_generator(str(generator)), sources.halide, sources.compiler, sources.environment
            )
            with contextlib.closing(program):
                runs = tuple(place / target for target in TARGETS)
                for run in runs:
                    profile = load_profile(run.name, settings.profile_folder)
                    write_tuned_run(run, generator, program, profile, sources.halide, {"variant": "0"})
            ship_runs(runs, place / "shipped", sources, ShipRequest(SDK_VERSION), lambda step: None)
            made[file_name] = ShippedProduct(generator, runs, place / "shipped")
        return made[file_name]

    return get
