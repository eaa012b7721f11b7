"""The options of `sdk autotune`, with the names of Halide's and Qualcomm's loops where those have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sdk.options.devices_options import complete_device_names
from sdk.options.farm_options import complete_scheduler
from sdk.options.shared_options import HEXAGON_SDK_HELP, complete_target_names, complete_weights_names

_WHAT = "What is tuned"
_DEVICE = "Where it is timed"
_LENGTH = "How long"
_FOLDER = "Run folder"
_INPUTS = "What kernels are called with"
_SAMPLING = "How schedules are sampled"
_LEARNING = "How the cost model learns"
_LIMITS = "Limits of one candidate"
_OUTPUT = "What is printed"


def complete_devices(context: typer.Context, incomplete: str) -> list[str]:
    """Return the kinds and names of devices that start with `incomplete`, for the shell."""
    from devices.local.open_device import DEVICE_KINDS

    kinds = [kind for kind in DEVICE_KINDS if kind.startswith(incomplete)]
    return [*kinds, *complete_device_names(context, incomplete)]


def complete_clocks(incomplete: str) -> list[str]:
    """Return the emulators' clocks that start with `incomplete`, for the shell."""
    from sdk.select.clock_choice import EMULATOR_CLOCKS

    return [clock for clock in EMULATOR_CLOCKS if clock.startswith(incomplete)]


def complete_losses(incomplete: str) -> list[str]:
    """Return the losses that start with `incomplete`, for the shell."""
    from autotune_loop.specification.tune_request import LOSSES

    return [loss for loss in LOSSES if loss.startswith(incomplete)]


def complete_objectives(incomplete: str) -> list[str]:
    """Return the objectives that start with `incomplete`, for the shell."""
    from autotune_loop.specification.objective import ObjectiveKind

    return [kind.value for kind in ObjectiveKind if kind.value.startswith(incomplete)]


def complete_priorities(incomplete: str) -> list[str]:
    """Return the priorities that start with `incomplete`, for the shell."""
    from autotune_loop.farm.fair_share import RunPriority

    return [priority.value for priority in RunPriority if priority.value.startswith(incomplete)]


Generators = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[GENERATOR]...",
        help="path.py[:name], path.cpp[:name], a built path.generator[:name], or a name of sdk.toml; several are"
        " tuned in one run.",
    ),
]
OptionalTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="PROFILE",
        help="Target profile, by name or path; `sdk targets` lists them. Default: that of sdk.toml, else host.",
        autocompletion=complete_target_names,
        rich_help_panel=_WHAT,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="KEY=VALUE",
        help="A generator parameter; repeat for more.",
        rich_help_panel=_WHAT,
    ),
]
ArgumentSets = Annotated[
    str | None,
    typer.Option(
        "--generator-arg-sets",
        metavar="SETS",
        help='Tune for several sets of parameters: spaces between sets, ; inside one ("a=1;b=2 a=3").',
        rich_help_panel=_WHAT,
    ),
]
FunctionName = Annotated[
    str | None,
    typer.Option(
        "--function-name",
        "-f",
        metavar="NAME",
        help="Name of the tuned function; the generator's by default.",
        rich_help_panel=_WHAT,
    ),
]
Incumbents = Annotated[
    list[str] | None,
    typer.Option(
        "--incumbent",
        metavar="HEADER",
        help="The header in use today, which stays unless it is beaten; NAME=HEADER where several things are tuned.",
        rich_help_panel=_WHAT,
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        "-r",
        metavar="DEVICE",
        help="A device of the inventory, label:LABEL, local, qemu or hexagon-sim; repeat to share the work. By default"
        " the free devices of the target, else this machine or its emulator.",
        autocompletion=complete_devices,
        rich_help_panel=_DEVICE,
    ),
]
Inventory = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        metavar="FILE",
        help="The devices.toml that names the devices; found as `sdk devices` does by default.",
        rich_help_panel=_DEVICE,
    ),
]
DevicePatience = Annotated[
    str,
    typer.Option(
        "--device-patience",
        metavar="TIME",
        help="How long the run waits when no device is left.",
        rich_help_panel=_DEVICE,
    ),
]
EmulatorClock = Annotated[
    str | None,
    typer.Option(
        "--clock",
        metavar="NAME",
        help="Of this machine's emulator: simulated (from what a program does; the default where it can be had) or"
        " emulated (how long the emulator takes).",
        autocompletion=complete_clocks,
        rich_help_panel=_DEVICE,
    ),
]
HexagonSdkRoot = Annotated[
    Path | None,
    typer.Option("--hexagon-sdk-root", metavar="FOLDER", help=HEXAGON_SDK_HELP, rich_help_panel=_DEVICE),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Use a farm's devices: tls://HOST:8786, or none to stay here; without it SDK_SCHEDULER or sdk.toml's.",
        autocompletion=complete_scheduler,
        rich_help_panel=_DEVICE,
    ),
]
FarmCertificates = Annotated[
    Path | None,
    typer.Option(
        "--farm-certificates",
        metavar="DIR",
        help="This machine's certificates for the farm; without it the folder farm in your settings.",
        rich_help_panel=_DEVICE,
    ),
]
Priority = Annotated[
    str,
    typer.Option(
        "--priority",
        metavar="LEVEL",
        help="Share of a farm's device time: low, normal (twice low's) or high (twice normal's).",
        autocompletion=complete_priorities,
        rich_help_panel=_DEVICE,
    ),
]
Parallelism = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        min=1,
        metavar="THREADS",
        help="Threads that schedules are made for and timed with (a card's multiprocessors); the device's by default.",
        rich_help_panel=_DEVICE,
    ),
]
ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="What the winner is to be good at where there are several devices: mean (the geometric mean), worst"
        " (slower on none of them) or weighted. Default: mean, or weighted with --device-weight.",
        autocompletion=complete_objectives,
        rich_help_panel=_DEVICE,
    ),
]
DeviceWeights = Annotated[
    list[str] | None,
    typer.Option(
        "--device-weight",
        metavar="NAME=NUMBER",
        help="How much a device counts, 1 by default; repeat for more.",
        rich_help_panel=_DEVICE,
    ),
]
WorstTolerance = Annotated[
    float,
    typer.Option(
        "--worst-tolerance",
        metavar="SHARE",
        help="With --objective worst: how much slower than what it replaces the winner may be on any device.",
        rich_help_panel=_DEVICE,
    ),
]
PlayOffTurns = Annotated[
    int,
    typer.Option(
        "--play-off-turns",
        min=8,
        metavar="COUNT",
        help="The most turns in which the winner must prove itself against the default or the incumbent.",
        rich_help_panel=_LENGTH,
    ),
]
Rounds = Annotated[
    int,
    typer.Option(
        "--num-batches",
        "-n",
        min=1,
        metavar="ROUNDS",
        help="Rounds of sampling, timing and learning.",
        rich_help_panel=_LENGTH,
    ),
]
BatchSize = Annotated[
    int,
    typer.Option(
        "--batch-size",
        "-s",
        min=2,
        max=1000,
        metavar="COUNT",
        help="Schedules timed a round.",
        rich_help_panel=_LENGTH,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="End after this time with the best so far: 90s, 10m, 1.5h.",
        rich_help_panel=_LENGTH,
    ),
]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--run-dir",
        "-b",
        metavar="FOLDER",
        help="Where everything goes; by default a new tuned/NAME-PROFILE-1, -2 and so on.",
        rich_help_panel=_FOLDER,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the run in --run-dir, else with the newest one of this generator and target.",
        rich_help_panel=_FOLDER,
    ),
]
Replay = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="RUN",
        help="Try other options on a recorded run: schedules are chosen from it, their times looked up; no device.",
        rich_help_panel=_FOLDER,
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        metavar="ARG=1920x1080",
        help="Size of an input or output, in place of its estimate; repeat for more.",
        rich_help_panel=_INPUTS,
    ),
]
Scalars = Annotated[
    list[str] | None,
    typer.Option(
        "--scalar",
        metavar="NAME=VALUE",
        help="Value of a scalar argument, in place of its estimate; repeat for more.",
        rich_help_panel=_INPUTS,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=FILE.npy",
        help="An input's data, in place of random data; the last axis is Halide's first dimension.",
        rich_help_panel=_INPUTS,
    ),
]
InputSeed = Annotated[
    int,
    typer.Option("--input-seed", metavar="NUMBER", help="Seed of the random data.", rich_help_panel=_INPUTS),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="NUMBER", help="Seed of everything random.", rich_help_panel=_SAMPLING),
]
PoolFactor = Annotated[
    float,
    typer.Option(
        "--pool-factor",
        metavar="FACTOR",
        help="Schedules searched for each that is timed.",
        rich_help_panel=_SAMPLING,
    ),
]
RandomShare = Annotated[
    float,
    typer.Option(
        "--random-share",
        metavar="SHARE",
        help="Share of a round that is drawn at random, whatever the cost model says.",
        rich_help_panel=_SAMPLING,
    ),
]
Diversity = Annotated[
    float,
    typer.Option(
        "--diversity",
        metavar="WEIGHT",
        help="Weight of being different against being predicted fast.",
        rich_help_panel=_SAMPLING,
    ),
]
WeightsFile = Annotated[
    str | None,
    typer.Option(
        "--weights",
        "-w",
        metavar="WEIGHTS",
        help="Weights to start from: a file that ends in .weights, a name of `sdk weights`, or baseline (Halide's). By"
        " default the profile's, else the nearest that are known.",
        autocompletion=complete_weights_names,
        rich_help_panel=_LEARNING,
    ),
]
LossName = Annotated[
    str,
    typer.Option(
        "--loss",
        metavar="NAME",
        help="relative_throughput (Halide's) or rank (AutoTVM's).",
        autocompletion=complete_losses,
        rich_help_panel=_LEARNING,
    ),
]
Epochs = Annotated[
    int,
    typer.Option(
        "--epochs",
        min=1,
        metavar="COUNT",
        help="Passes over all samples after a round.",
        rich_help_panel=_LEARNING,
    ),
]
LearningRate = Annotated[
    float,
    typer.Option("--learning-rate", metavar="RATE", help="Adam's step size.", rich_help_panel=_LEARNING),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="COUNT",
        help="Candidates built at once; one for each core that is not timed on by default.",
        rich_help_panel=_LIMITS,
    ),
]
SearchLimit = Annotated[
    str,
    typer.Option("--search-limit", metavar="TIME", help="Time of one search.", rich_help_panel=_LIMITS),
]
FullSearchLimit = Annotated[
    str | None,
    typer.Option(
        "--full-search-limit",
        metavar="TIME",
        help="Time of the search that makes the default schedule; 10m by default, or a fifth of --budget.",
        rich_help_panel=_LIMITS,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory of one search, such as 4G; by default 8G, or less on a small machine.",
        rich_help_panel=_LIMITS,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print every event as a line of JSON, the result last (with --quiet: the result alone).",
        rich_help_panel=_OUTPUT,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result alone.", rich_help_panel=_OUTPUT)]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="Print lines, not the live view; so it is anyway when the output is no terminal.",
        rich_help_panel=_OUTPUT,
    ),
]
