"""What `sdk bench` and `sdk build` can be asked beside the options of a run that they take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from halide_autotune.targets.profile.profile import OWN_SCHEDULE
from halide_autotune.targets.values.checks import above_zero, whole_number
from halide_autotune.targets.values.options import Option
from halide_autotune.targets.values.texts import parse_duration_s

_DECIDING = "Deciding"


@dataclass(frozen=True)
class BenchOptions:
    """What `sdk bench` times, and what it shows."""

    schedules: Annotated[
        tuple[str, ...],
        Option(
            "--schedule",
            metavar="HEADER",
            help="A .schedule.h; or own (the generator's), adams2019, mullapudi2016, li2018. Repeatable.",
        ),
    ] = (OWN_SCHEDULE,)
    turns: Annotated[
        int, whole_number(1), Option("--turns", metavar="COUNT", help="How often each schedule is timed.")
    ] = 5
    by_func: Annotated[
        bool, Option("--by-func", help="Show what each Func takes, by Halide's profiler, instead of timing.")
    ] = False
    play_off: Annotated[
        bool,
        Option(
            "--play-off",
            help="Decide with 95 % confidence whether the best of the others beats the first schedule.",
            panel=_DECIDING,
        ),
    ] = False
    budget_s: Annotated[
        float | None,
        above_zero(),
        Option(
            "--budget",
            metavar="TIME",
            help="End the play-off after this time, even if it is undecided: 90s, 10m.",
            panel=_DECIDING,
            parse=parse_duration_s,
        ),
    ] = None
    as_json: Annotated[bool, Option("--json", help="Print JSON for machines.")] = False


@dataclass(frozen=True)
class BuildOptions:
    """What `sdk build` builds, and where it puts the files."""

    schedule: Annotated[
        str,
        Option(
            "--schedule",
            metavar="HEADER",
            help="A .schedule.h; or own (the generator's), adams2019 (anderson2021 for a card), mullapudi2016, li2018.",
        ),
    ] = OWN_SCHEDULE
    output: Annotated[Path, Option("--output", "-o", metavar="FOLDER", help="Folder for the files.")] = Path("build")
    as_json: Annotated[bool, Option("--json", help="Print JSON for machines.")] = False
