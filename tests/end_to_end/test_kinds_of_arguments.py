"""Generators with arguments of every kind, tuned and shipped."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import sdk
from halide_autotune.autotune_loop.run.result import Outcome, TuneResult
from halide_autotune.sdk.options.ship_options import ShipOptions
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from tests.end_to_end.run_files import rows
from tests.unit.targets.raw_arrays import read_arrays

pytestmark = pytest.mark.toolchain

HERE = Path(__file__).parent / "generators"
IN_CPP = (
    "tuple_output",
    "unlike_outputs",
    "arrays",
    "funcs",
    "scalars",
    "interleaved",
    "odd_types",
    "by_hand",
    ("any_type", ("input.type=uint8", "input.dim=3", "output.type=uint16")),
)
IN_PYTHON = (
    "typed_scalars",
    "unlike_shapes",
    "tuple_output",
    ("any_type", ("image.type=int32", "image.dim=2", "output.type=int32")),
)

Tune = Callable[..., TuneResult]
Entries = tuple[str | tuple[str, tuple[str, ...]], ...]


def specs(file: str, entries: Entries) -> list[sdk.GeneratorSpec]:
    named = [(entry, ()) if isinstance(entry, str) else entry for entry in entries]
    return [sdk.GeneratorSpec(f"{HERE / file}:{name}", tuple(parameters)) for name, parameters in named]


@pytest.mark.parametrize(("file", "entries"), [("kinds.cpp", IN_CPP), ("kinds.py", IN_PYTHON)])
def test_every_kind_is_tuned_and_shipped(
    tune: Tune, settings: Settings, tmp_path: Path, file: str, entries: Entries
) -> None:
    """One run tunes them all. Each has schedules whose outputs were compared, and one that a user can build with."""
    run = tmp_path / "run"
    count = len(entries)
    result = tune(specs(file, entries), rounds=1, batch_size=2, pool_factor=1, run_folder=run)
    assert result.outcome is Outcome.FINISHED
    timed = rows(
        run,
        "SELECT c.task, min(m.output_checked) FROM measurements m JOIN candidates c ON c.symbol = m.symbol"
        " WHERE m.purpose = 'sample' GROUP BY c.task ORDER BY c.task",
    )
    assert timed == [(task, 1) for task in range(count)]
    assert all(tuned.header is not None for tuned in result.tuned)
    options = ShipOptions(allow_unconfirmed=True, no_sizes=True)
    shipped = sdk.ship([run], tmp_path / "shipped", options, settings=settings)
    assert len(shipped.schedules) == count


def test_scalars_of_every_type_are_taken(settings: Settings, tmp_path: Path) -> None:
    """Those of 16 bits have no estimates in Halide, so a value must be given; it is rounded to the nearest."""

    def first_value(**scalars: str) -> float:
        options = sdk.RunOptions.of(scalars=scalars)
        generator = f"{HERE / 'kinds.py'}:half_gain"
        made = sdk.build(generator, tmp_path / "built", options=options, settings=settings)
        command = [str(made.benchmark), "--kernel", "half_gain", "--write-reference", str(tmp_path / "out")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return float(read_arrays(tmp_path / "out")[0].values[0, 0])

    assert first_value(gain="1.5", brain_gain="-2") == -3.0
    assert first_value(gain="0", brain_gain="1") == 0.0
    assert first_value(gain="0.33333", brain_gain="1") == 0.333251953125
    assert first_value(gain="6e-8", brain_gain="1") == 2.0**-24
    assert first_value(gain="1", brain_gain="1.003") == 1.0
    assert first_value(gain="65504", brain_gain="3e38") == float("inf")


@pytest.mark.parametrize(
    ("scalars", "words"),
    [
        ({"gain": "1e5", "brain_gain": "1"}, "--scalar gain got '1e5'; expected a value of type float16"),
        ({"brain_gain": "1"}, "gives no estimate for gain"),
    ],
)
def test_a_scalar_that_does_not_fit_is_one_sentence(settings: Settings, scalars: dict[str, str], words: str) -> None:
    with pytest.raises((UsageError, GeneratorError), match=words):
        options = sdk.RunOptions.of(scalars=scalars)
        sdk.bench(f"{HERE / 'kinds.py'}:half_gain", options=options, turns=1, settings=settings)
