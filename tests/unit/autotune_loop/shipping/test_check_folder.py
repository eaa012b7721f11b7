"""`sdk ship --check` in somebody's CI."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.check_folder import CheckedFolder, check_folder
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.ship_manifest import ShipManifest
from halide_autotune.autotune_loop.shipping.ship_runs import ShipRequest, ship_runs
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.reference import parse_generator
from tests.unit.autotune_loop.shipping.conftest import SDK_VERSION, ShippedProduct

Check = Callable[..., CheckedFolder]


@pytest.fixture
def product(ship_product: Callable[[str], ShippedProduct], tmp_path: Path) -> ShippedProduct:
    made = ship_product("product.py")
    return replace(made, folder=Path(shutil.copytree(made.folder, tmp_path / "shipped")))


@pytest.fixture
def check(product: ShippedProduct, sources: GeneratorSources) -> Check:
    def get(*given: str, **parameters: str) -> CheckedFolder:
        passed = replace(sources, given=tuple(parse_generator(file) for file in given))
        return check_folder(product.folder, passed, parameters, sources.halide)

    return get


def test_a_folder_is_as_it_was_and_fits(product: ShippedProduct, check: Check) -> None:
    assert check(str(product.generator)) == CheckedFolder({}, (), 2)
    alone = check()
    assert (alone.problems, alone.schedules) == ((), 0) and len(alone.notes) == 2
    assert "--generator" in alone.notes[0]


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("1", r"arm64\.schedule\.h: Func \d is now '\w+', was '\w+'\."),
        ("2", r"arm64\.schedule\.h: Func 3 'across' is defined differently\."),
        ("3", r"there are 10 Funcs, were 9"),
        # A Python module does not see this; the check does.
        ("4", r"Func \d 'total' is defined differently"),
    ],
)
def test_a_generator_that_has_changed_is_found(product: ShippedProduct, check: Check, variant: str, words: str) -> None:
    checked = check(str(product.generator), variant=variant)
    assert len(checked.problems) == 2
    assert re.search(words, checked.problems[0]), checked.problems


def test_files_that_have_changed_are_found(product: ShippedProduct, check: Check) -> None:
    (product.folder / "product.arm64.schedule.h").write_text("by hand")
    (product.folder / "product_schedule.py").unlink()
    (product.folder / "more.h").write_text("")
    assert set(check().problems) == {
        "product.arm64.schedule.h was changed after it was shipped.",
        "product_schedule.py is missing.",
        "more.h is in the folder but was not shipped.",
    }


def test_a_generator_of_something_else_is_refused(check: Check, examples: Path) -> None:
    with pytest.raises(GeneratorError, match=r"has no schedule of the given generators.*product"):
        check(str(examples / "separable_filter.py"))


def test_what_is_shipped_must_be_of_the_generator_that_was_tuned(
    product: ShippedProduct, sources: GeneratorSources, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(product.runs[0], tmp_path / "run"))

    def ship(*runs: Path, given: tuple[str, ...] = ()) -> ShipManifest:
        passed = replace(sources, given=tuple(parse_generator(file) for file in given))
        return ship_runs(runs, tmp_path / "new", passed, ShipRequest(SDK_VERSION), lambda step: None)

    with pytest.raises(UsageError, match="are both runs of product for x86-64"):
        ship(run, product.runs[0])
    toml = (run / "run.toml").read_text()
    changed = Path(shutil.copy(product.generator, tmp_path / "changed.py"))
    changed.write_text(changed.read_text() + "# later\n")
    (run / "run.toml").write_text(toml.replace(str(product.generator), str(changed)))
    with pytest.raises(GeneratorError, match=r"changed\.py has changed since .* was tuned"):
        ship(run)
    (run / "run.toml").write_text(toml.replace(str(product.generator), "/gone.py"))
    with pytest.raises(GeneratorError, match=r"gone\.py is missing\. .* was tuned from it"):
        ship(run)
    assert not (tmp_path / "new").exists()
    assert ship(run, given=(str(changed),)).schedules[0].name == "product"
