"""Every emulated target: built, run under QEMU by the simulated clock, the output checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.sdk import GeneratorSpec, bench
from halide_autotune.sdk.api.weights.train_weights import train_weights
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.process.stop_signal import StopSignal
from halide_autotune.targets.profile.loader import load_profile
from tests.end_to_end.conftest import Tune
from tests.end_to_end.run_files import check_header, check_run_folder, rows

# Rows of whole vectors: Halide 21's Hexagon code generator fails on some others.
TINY = ["width=128", "height=16", "channels=1"]
SMALL_MATRICES = ["rows=32", "columns=64", "depth=16"]
# Two of these share a C library, which takes a minute to build: a test of each would give them to two workers.
ARCHITECTURES = {"arm32": ["arm32"], "riscv64": ["riscv64-rvv"], "hexagon": ["hexagon-v65", "hexagon-v68"]}


def needs(target: str) -> None:
    emulator = load_profile(target).emulator
    assert emulator is not None
    if not shutil.which(emulator.command) or not Path(emulator.system_root or "/").is_dir():
        pytest.skip(f"{emulator.command} is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_schedules_run_and_agree(architecture: str, settings: Settings, examples: Path) -> None:
    for target in ARCHITECTURES[architecture]:
        needs(target)
        results = bench(
            GeneratorSpec(str(examples / "separable_filter.py"), tuple(TINY)),
            ["adams2019"],
            target=target,
            turns=1,
            settings=settings,
        )
        for result in results:
            assert result.failure is None, result.failure
            assert result.reference == ("Mullapudi2016" if architecture == "arm32" else "AllAtRoot")
            (turn,) = result.turns
            assert turn.output_checked and turn.clock.value == "simulated"
            assert len(turn.repetitions_s) == 1 and 1e-6 < turn.median_s < 1e-3


@pytest.mark.slow
def test_a_run_for_hexagon(tune: Tune, examples: Path, tmp_path: Path) -> None:
    needs("hexagon-v66")
    result = tune(
        str(examples / "separable_filter.py"),
        target="hexagon-v66",
        parameters=TINY,
        rounds=1,
        batch_size=2,
        pool_factor=1.0,
        seed=3,
        run_folder=tmp_path / "run",
    )
    assert result.outcome is Outcome.FINISHED
    assert (result.target, result.device, result.clock) == ("hexagon-v66", "qemu", "simulated")
    check_run_folder(result, "separable_filter", "simulated")
    checked = rows(result.run_folder, "SELECT output_checked FROM measurements WHERE purpose = 'sample'")
    assert checked and all(value == 1 for (value,) in checked)
    header = result.best.header
    assert header is not None
    check_header(header, "separable_filter")
    assert "hexagon-32-noos" in header.read_text()


# The product is right in loops alone; the clamped input is copied in vectors.
SHARPEN = """\
import halide as hl

x, y = hl.Var("x"), hl.Var("y")


@hl.generator(name="sharpen")
class Sharpen(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 2)
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self):
        inside = hl.BoundaryConditions.repeat_edge(self.input)
        widened, padded = hl.Func("widened"), hl.Func("padded")
        padded[x, y] = inside[x, y] ^ hl.u8(1)
        widened[x, y] = hl.i16(padded[x, y])
        self.output[x, y] = hl.u8_sat(widened[x, y] * 3 - widened[x + 1, y] - widened[x, y + 1])
        self.input.set_estimates([(0, 128), (0, 32)])
        self.output.set_estimates([(0, 128), (0, 32)])
"""
AVERAGE = """
import halide as hl

x = hl.Var("x")


@hl.generator(name="average")
class Average(hl.Generator):
    input = hl.InputBuffer(hl.UInt(8), 1)
    output = hl.OutputBuffer(hl.UInt(8), 1)

    def generate(self):
        self.output[x] = hl.u8((hl.i32(self.input[x]) + hl.i32(self.input[x + 1])) / 2)
        self.input.set_estimates([(0, 1025)])
        self.output.set_estimates([(0, 1024)])
        if not self.using_autoscheduler():
            self.output.vectorize(x, self.natural_vector_size(hl.UInt(8)))
"""


@pytest.mark.slow
def test_vectors_that_halide_gets_wrong_for_hvx_are_found_out(settings: Settings, tmp_path: Path) -> None:
    """They are wrong in every schedule with vectors of bytes, the one included that is the reference elsewhere."""
    needs("hexagon-v66")
    (tmp_path / "average.py").write_text(AVERAGE)
    schedules = ["own", "adams2019", "mullapudi2016", "li2018"]
    results = bench(str(tmp_path / "average.py"), schedules, target="hexagon-v66", turns=1, settings=settings)
    assert {result.reference for result in results} == {"AllAtRoot"}
    reasons = [None if result.failure is None else result.failure.reason.value for result in results]
    assert reasons == ["wrong output", "wrong output", "wrong output", None]


@pytest.mark.slow
def test_a_rival_with_right_outputs_competes_where_all_vectors_are_wrong(tune: Tune, tmp_path: Path) -> None:
    needs("hexagon-v66")
    (tmp_path / "average.py").write_text(AVERAGE)
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.text)

    run = tmp_path / "run"
    with pytest.raises(GeneratorError, match=r"None of the first schedules .* × measure: wrong output\)"):
        # Whatever Halide samples has vectors; a child of another technique may have none, and be right.
        about = {"technique": ["sampling"], "rounds": 1, "run_folder": run, "listen": listen}
        tune(str(tmp_path / "average.py"), target="hexagon-v66", **about)
    assert any(text.startswith("Mullapudi2016's schedule is left out: ") for text in told)
    assert any(text.startswith("Li2018's schedule takes ") for text in told)
    timed = dict(rows(run, "SELECT symbol, output_checked FROM measurements"))
    assert timed == {"average_reference_a0": 0, "average_rival_a0": 1}
    assert {path.name for path in (run / "samples/rival/0").iterdir()} == {"average.schedule.h"}


@pytest.mark.slow
def test_what_halide_multiplies_wrongly_for_riscv_is_computed_in_loops(tune: Tune, tmp_path: Path) -> None:
    needs("riscv64-rvv")
    (tmp_path / "sharpen.py").write_text(SHARPEN)
    run = tmp_path / "run"
    result = tune(str(tmp_path / "sharpen.py"), target="riscv64-rvv", rounds=1, batch_size=8, run_folder=run)
    assert result.totals.samples_timed > 0
    sql = "SELECT c.sample FROM failures f JOIN candidates c ON c.symbol = f.symbol WHERE f.reason = 'wrong output'"
    assert {*rows(run, sql)} <= {(0,)}, "nothing but the default, which Halide makes alone"
    headers = [path.read_text() for path in (run / "samples/batch_0_0").glob("[1-9]*/*.schedule.h")]
    assert any(".vectorize(" in text for text in headers), "what is copied may be in vectors"


@pytest.mark.slow
@pytest.mark.usefixtures("tensorflow_ready", "forked_tensorflow")
def test_random_programs_are_timed_without_a_rival(settings: Settings, tmp_path: Path) -> None:
    """It is built because it may win, and nothing wins where schedules are only recorded."""
    needs("hexagon-v66")
    stop, folder = StopSignal(), tmp_path / "training"

    def tell(text: str) -> None:
        if text.startswith("Iteration 1"):
            stop.set()

    options = {"target": "hexagon-v66", "size": "128x96", "programs": 1, "batch_size": 8, "seed": 232}
    train_weights(options=options, folder=folder, budget_s=3600.0, tell=tell, stop=stop, settings=settings)
    timed = {symbol for (symbol,) in rows(folder / "iteration_001", "SELECT symbol FROM measurements")}
    assert "random_program_reference_a0" in timed and len(timed) > 2, "the reference, and schedules of the program"
    assert not any("rival" in symbol for symbol in timed)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v66", "v68"])
def test_floats_are_refused_where_only_halides_search_is_asked_for(
    version: str, tune: Tune, examples: Path, tmp_path: Path
) -> None:
    """V66 has no vectors of floats, and Halide fails on them; V68 has some, which QEMU does not know."""
    needs("hexagon-v66")
    with pytest.raises(GeneratorError, match=f"matrix_product computes with floats.*hexagon-{version}") as caught:
        tune(
            str(examples / "matrix_product.py"),
            target=f"hexagon-{version}",
            parameters=SMALL_MATRICES,
            technique=["sampling"],
            run_folder=tmp_path / "run",
        )
    assert "other techniques than sampling" in caught.value.next_step and "\n" not in str(caught.value)


@pytest.mark.slow
def test_floats_are_kept_out_of_vectors_that_cannot_hold_them(tune: Tune, examples: Path, tmp_path: Path) -> None:
    needs("hexagon-v66")
    result = tune(
        str(examples / "matrix_product.py"),
        target="hexagon-v66",
        parameters=SMALL_MATRICES,
        rounds=1,
        batch_size=5,
        run_folder=tmp_path / "run",
    )
    assert result.totals.samples_timed > 0
    found = {*rows(tmp_path / "run", "SELECT origin, lineage IS NOT NULL FROM candidates")}
    assert ("sketch", 1) in found and ("random search", 1) in found, "samples are edited"
    assert ("random search", 0) not in found
    headers = [path.read_text() for path in (tmp_path / "run/samples").rglob("batch_*/*/*.schedule.h")]
    assert headers and not any(".vectorize(" in text for text in headers)
