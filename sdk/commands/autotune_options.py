"""The options of `sdk autotune`, with the names of Halide's and Qualcomm's loops where those have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sdk.commands.devices_options import complete_device_names
from sdk.options import complete_target_names

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
    from devices.open_device import DEVICE_KINDS

    kinds = [kind for kind in DEVICE_KINDS if kind.startswith(incomplete)]
    return [*kinds, *complete_device_names(context, incomplete)]


def complete_losses(incomplete: str) -> list[str]:
    """Return the losses that start with `incomplete`, for the shell."""
    from autotune_loop.tune_request import LOSSES

    return [loss for loss in LOSSES if loss.startswith(incomplete)]


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
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        "-r",
        metavar="DEVICE",
        help="A device of the inventory, label:LABEL, local or qemu; repeat to share the work. By default the free"
        " devices of the target, else this machine or its emulator.",
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
Parallelism = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        min=1,
        metavar="THREADS",
        help="Threads that schedules are made for and timed with; the device's cores by default.",
        rich_help_panel=_DEVICE,
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
    Path | None,
    typer.Option(
        "--weights",
        "-w",
        metavar="FILE.weights",
        help="Weights to start from; the profile's by default.",
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
