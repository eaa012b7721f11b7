"""One winner, one figure: everything that tells the result of a run tells the same."""

from __future__ import annotations

import contextlib
import html
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.run.result import TunedSchedule
from halide_autotune.autotune_loop.schedule.parse import parse_schedule
from halide_autotune.autotune_loop.schedule.print_header import print_header
from halide_autotune.autotune_loop.schedule.print_loops import print_loops
from halide_autotune.autotune_loop.store.published import words_for
from halide_autotune.sdk.display.json_display import JsonDisplay
from halide_autotune.sdk.display.summary import print_summary
from halide_autotune.sdk.main import main
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.halide_install import HalideInstall
from halide_autotune.targets.profile.loader import load_profile
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.tuned_run_folder import Ending, write_tuned_run
from tests.unit.sdk.display.recorded_run import RESULT

pytestmark = pytest.mark.toolchain

GENERATOR = Path(__file__).parents[2] / "autotune_loop" / "shipping" / "generators" / "product.py"
NAME = "best.product"
DEFAULT, TUNED, INCUMBENT = "product_r0_a0_s0", "product_r0_a0_s1", "product_incumbent_a0"
OWN = "product_own_a0"
# What the single timing of the rounds said: 0.8 ms, 5 times as fast.
LUCKY = re.compile(r"\b0\.80* ms|\b5\.00+ (times|×)")
FIGURES = ("default_ms", "tuned_ms", "speed_up", "speed_up_low", "speed_up_high")


@dataclass(frozen=True)
class Told:
    """All that was told of one run.

    Attributes:
        terminal, result: of `sdk autotune`, and with --json.
        report, report_json, page: of `sdk report`.
    """

    folder: Path
    tuned: TunedSchedule
    terminal: str
    result: dict[str, Any]
    report: str
    report_json: dict[str, Any]
    page: str

    @property
    def header(self) -> str:
        """What is published."""
        return (self.folder / "samples" / f"{NAME}.schedule.h").read_text()

    @property
    def note(self) -> str:
        """What lies beside it."""
        return (self.folder / "samples" / f"{NAME}.benchmark.txt").read_text()

    @property
    def verdict(self) -> dict[str, Any]:
        """The newest of the database."""
        with contextlib.closing(sqlite3.connect(self.folder / "tuning.db")) as connection:
            (text,) = connection.execute("SELECT verdict FROM verdicts ORDER BY rowid DESC LIMIT 1").fetchone()
        return dict(json.loads(text))

    @property
    def headline(self) -> str:
        """The report on the terminal, without the table of the rounds' times."""
        return self.report.partition("fastest in the rounds")[0]


@pytest.fixture(autouse=True)
def in_session_folders(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in settings.environment.items():
        monkeypatch.setenv(key, value)


@pytest.fixture(scope="module")
def runs(
    halide: HalideInstall, cpp_compiler: HostCppCompiler, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> dict[Ending, tuple[Path, TunedSchedule]]:
    """A run for each ending, decided by the code that decides real ones."""
    program = open_generator(parse_generator(str(GENERATOR)), halide, cpp_compiler, settings.environment)
    profile = load_profile("x86-64", settings.profile_folder)
    place = tmp_path_factory.mktemp("runs")
    with contextlib.closing(program):
        return {
            ending: (
                place / ending.name,
                write_tuned_run(
                    place / ending.name, GENERATOR, program, profile, halide, {"variant": "0"}, ending=ending
                ),
            )
            for ending in Ending
        }


@pytest.fixture(params=Ending, ids=lambda ending: ending.name)
def ending(request: pytest.FixtureRequest) -> Ending:
    return Ending(request.param)


@pytest.fixture
def told(
    ending: Ending,
    runs: dict[Ending, tuple[Path, TunedSchedule]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Told]:
    folder, tuned = runs[ending]
    result = replace(RESULT, tuned=(tuned,), run_folder=folder, clock="wall")
    print_summary(result, {}, None)
    terminal = capsys.readouterr().out
    JsonDisplay(result_only=True).finish(result, {})
    (as_json,) = json.loads(capsys.readouterr().out)["tuned"]
    page = tmp_path / "page.html"
    assert main(["report", str(folder), "-o", str(page)]) == 0
    report = capsys.readouterr().out
    assert main(["report", str(folder), "-o", str(page), "--json"]) == 0
    (report_json,) = json.loads(capsys.readouterr().out)["tasks"]
    yield Told(folder, tuned, terminal, as_json, report, report_json, html.unescape(page.read_text()))


def test_every_output_names_one_winner(ending: Ending, told: Told) -> None:
    sample = ending.value.partition(",")[0]
    confirmed = ending is not Ending.UNCONFIRMED
    symbol = {"default": DEFAULT, "incumbent": INCUMBENT, "own": OWN}.get(sample, TUNED)
    published = told.tuned.published
    assert (published.sample, published.symbol, published.confirmed) == (sample, symbol, confirmed)
    for as_json in (told.result, told.report_json):
        assert (as_json["sample"], as_json["confirmed"]) == (sample, confirmed)
    assert told.verdict["winner"] == told.result["verdict"]["winner"] == symbol
    assert f" for {sample}\n" in told.note
    for text in (told.terminal, told.headline):
        assert (f"{words_for(sample)} stays" in text) == published.stays
        assert published.stays or f"; {sample}\n" in text
        assert published.message in text
        assert ("unconfirmed" in text) == (not confirmed)
    assert (f'<dd class="large">{words_for(sample)} stays</dd>' in told.page) == published.stays
    mark = "" if confirmed else "; unconfirmed"
    assert published.stays or f"; {sample}{mark}</dd>" in told.page
    assert ("; unconfirmed</dd>" in told.page) == (not confirmed)
    assert published.message in told.page and published.message in told.note
    # The schedule itself: what is published is the winner's, and the page shows its loops.
    folders = {"default": "batch_0_0/0", "incumbent": "incumbent/0", "own": "own/0"}
    (own,) = (told.folder / "samples" / folders.get(sample, sample)).glob("*.schedule.h")
    loops = print_loops(parse_schedule(told.header))
    assert loops == print_loops(parse_schedule(own.read_text()))
    assert f'<span id="tuned-loops-0-label">tuned: {sample}</span>' in told.page
    assert f'aria-labelledby="tuned-loops-0-label">{loops}</pre>' in told.page


def test_every_output_has_one_figure(ending: Ending, told: Told) -> None:
    assert {key: told.report_json[key] for key in FIGURES} == {key: told.result[key] for key in FIGURES}
    published = told.tuned.published
    assert published.tuned is not None and published.default is not None and published.speed_up is not None
    time = f"{published.tuned.median_ms:#.4g} ms, {published.tuned.words}"
    if ending is Ending.CONFIRMED:
        # Of the pairs, not of the medians: the default has drifted.
        assert published.speed_up.times == pytest.approx(4.0, rel=0.01)
        assert published.default.median_ms / published.tuned.median_ms > 4.2
        assert published.speed_up.low is not None
        estimate = told.verdict["estimate"]["ratio"]
        assert told.result["speed_up"] == pytest.approx(1 / estimate, rel=1e-12)
    if published.stays:
        assert (published.speed_up.times, published.speed_up.low) == (1.0, None)
    else:
        for text in (told.terminal, told.headline, told.page.replace("</dd><dd>", " ")):
            assert published.speed_up_text in text
        assert time in told.terminal and time in told.headline
        ms = f"{published.tuned.median_ms:#.4g} ms"
        assert f'<dt>tuned</dt><dd class="large">{ms}</dd><dd>{published.tuned.words}; ' in told.page
    assert told.note.startswith(f"{published.tuned.median_ms:.6g} ms (wall time, {published.tuned.words}) for ")


def test_one_timing_is_called_so_wherever_it_is_told(ending: Ending, told: Told) -> None:
    is_told = ending is Ending.UNCONFIRMED
    for text in (told.terminal, told.headline, told.note):
        assert bool(LUCKY.search(text)) == ("one timing" in text) == is_told
    assert told.report_json["fastest_in_rounds"] == {"sample": "batch_0_0/1", "ms": 0.8, "timings": 1}
    for place in LUCKY.finditer(told.page.partition("<h2>The published schedule")[0]):
        assert "one timing" in told.page[place.start() : place.end() + 60]


def ship(told: Told, output: Path, *options: str) -> int:
    return main(["ship", str(told.folder), "-o", str(output), "--no-sizes", "--json", *options])


def test_what_ships_is_that_winner_with_that_figure(
    ending: Ending, told: Told, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "schedules"
    published = told.tuned.published
    if ending in (Ending.INCUMBENT_STAYS, Ending.OWN_STAYS):
        assert ship(told, output) == 1
        assert "is nothing new to ship" in capsys.readouterr().err and not output.exists()
        return
    if ending is Ending.UNCONFIRMED:
        assert ship(told, output) == 1
        said = capsys.readouterr().err
        assert "is unconfirmed: there was no time left for enough turns." in said and said.count("\n") == 1
        assert "--play-off" in said and f"sdk autotune --resume {told.folder}" in said and "--allow-unconf" in said
        assert not output.exists()
    options = ["--allow-unconfirmed"] if ending is Ending.UNCONFIRMED else []
    assert ship(told, output, *options) == 0
    (shipped,) = json.loads(capsys.readouterr().out)["schedules"]
    facts = shipped["provenance"]
    assert facts["confirmed"] == published.confirmed == told.result["confirmed"]
    for key in FIGURES:
        assert facts[key] == (told.result[key] and pytest.approx(told.result[key], rel=1e-5)), key
    header = (output / "product.x86-64.schedule.h").read_text()
    assert facts["verdict"] in header and facts["tuned_from"] in header
    if published.stays:
        assert facts["verdict"] == "this is the default schedule, which nothing has beaten: not faster"
    else:
        assert published.speed_up_text in header
    directives = re.findall(r"^ +\.\w+\(.*\)", print_header(parse_schedule(told.header), "product"), re.MULTILINE)
    assert len(directives) > 5 and all(directive in header for directive in directives)
    if ending is Ending.UNCONFIRMED:
        assert "unconfirmed: no play-off has decided; 5.00 times as fast as the default, one timing" in header
        assert (
            "confirmed = false;" in header
            and "one timing"
            in json.loads((output / "ship.json").read_text())["schedules"][0]["provenance"]["tuned_from"]
        )


def test_a_play_off_and_its_absence_are_not_asked_for_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ship", "RUN", "-o", str(tmp_path / "new"), "--play-off", "--allow-unconfirmed"]) == 2
    assert "Leave --allow-unconfirmed out" in capsys.readouterr().err
