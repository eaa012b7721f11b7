"""The options of `autotune`, in groups: each option is declared here, and nowhere else.

From these declarations come the command line, the keyword arguments, the tables of `run.toml`, `[autotune]` of
`sdk.toml` and the table of options in the documentation. The names are those of Halide's and Qualcomm's loops if
they have the option.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from halide_autotune.autotune_loop.farm.fair_share import RunPriority
from halide_autotune.autotune_loop.specification.measure_options import MeasureOptions
from halide_autotune.autotune_loop.specification.objective import complete_objective
from halide_autotune.autotune_loop.specification.play_off_options import PlayOffOptions
from halide_autotune.autotune_loop.technique_name import TechniqueName
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.targets.profile.target_features import feature_word, split_features
from halide_autotune.targets.values.checks import above_zero, list_of, matching, number, whole_number
from halide_autotune.targets.values.options import Option, with_values
from halide_autotune.targets.values.texts import parse_duration_s, parse_memory_bytes

_WHAT = "What is tuned"
_DEVICE = "Where it is timed"
_LENGTH = "How long"
_SAMPLING = "How schedules are searched"
_LEARNING = "How the cost model learns"
_LIMITS = "Limits of one candidate"


def technique_names(texts: Iterable[str]) -> list[str]:
    """The names of texts such as 'sketches,evolution'."""
    return [name.strip() for text in texts for name in text.split(",")]


# Adams2019 parses its seed as an int.
_HIGHEST_SEED = 2**31 - 1
# relative_throughput is Halide's: the squared error of the throughput relative to the pipeline's fastest schedule.
# rank is AutoTVM's: the logistic loss of pairs on the logarithm of the predicted cost. It learns the order but not the
# scale: predictions are then no longer milliseconds.
Loss = Literal["relative_throughput", "rank"]
Acquisition = Literal["bound", "improvement"]


@dataclass(frozen=True)
class DeviceOptions:
    """The target and the devices of a command."""

    target: Annotated[
        str | None,
        Option(
            "--target",
            "-t",
            metavar="PROFILE",
            help="Target profile, by name or path; `sdk targets` lists them. Default: a run's,"
            " where one is given; else the one in sdk.toml, else host.",
            panel=_WHAT,
            complete="targets",
            is_fixed=True,
        ),
    ] = None
    device: Annotated[
        tuple[str, ...],
        Option(
            "--device",
            "-r",
            metavar="DEVICE",
            help="A device of the inventory, label:LABEL, local, qemu or hexagon-sim. Repeat it to share the work."
            " Default: a run's, where one is given; else the free devices of the target, else this machine or its"
            " emulator.",
            panel=_DEVICE,
            complete="devices",
        ),
    ] = ()
    inventory: Annotated[
        Path | None,
        Option(
            "--inventory",
            metavar="FILE",
            help="The devices.toml with the devices. Default: the one that `sdk devices` uses.",
            panel=_DEVICE,
        ),
    ] = None
    clock: Annotated[
        str | None,
        Option(
            "--clock",
            metavar="NAME",
            help="Clock of this machine's emulator: simulated (from instructions and memory accesses; the default if"
            " available) or emulated (the emulator's own time).",
            panel=_DEVICE,
            complete="clocks",
            is_fixed=True,
        ),
    ] = None
    hexagon_sdk_root: Annotated[
        Path | None,
        Option(
            "--hexagon-sdk-root",
            metavar="FOLDER",
            help="Qualcomm's Hexagon SDK, for its compiler, its simulator and phones' DSPs. Default: HEXAGON_SDK_ROOT.",
            panel=_DEVICE,
        ),
    ] = None
    parallelism: Annotated[
        int | None,
        whole_number(1),
        Option(
            "--parallelism",
            metavar="THREADS",
            help="Threads (on a GPU, multiprocessors) that schedules are made for and timed with. Default: the"
            " device's.",
            panel=_DEVICE,
            is_fixed=True,
        ),
    ] = None
    target_features: Annotated[
        tuple[str, ...],
        list_of(feature_word),
        Option(
            "--target-features",
            metavar="WORDS",
            help="Further features of the profile's Halide target, such as avx512,strict_float.",
            panel=_WHAT,
            parse=split_features,
            is_fixed=True,
        ),
    ] = ()


@dataclass(frozen=True)
class FarmOptions:
    """The farm, if devices of one are used."""

    scheduler: Annotated[
        str | None,
        Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Use a farm's devices: tls://HOST:8786, or none for no farm. Default: SDK_SCHEDULER, else sdk.toml.",
            panel=_DEVICE,
            complete="scheduler",
        ),
    ] = None
    farm_certificates: Annotated[
        Path | None,
        Option(
            "--farm-certificates",
            metavar="DIR",
            help="This machine's certificates for the farm. Default: the folder farm in your settings.",
            panel=_DEVICE,
        ),
    ] = None
    priority: Annotated[
        RunPriority,
        Option(
            "--priority",
            metavar="LEVEL",
            help="Share of a farm's device time: low, normal (twice low's) or high (twice normal's).",
            panel=_DEVICE,
        ),
    ] = RunPriority.NORMAL


@dataclass(frozen=True)
class Limits:
    """When a run ends, and what one candidate may use; times in seconds."""

    rounds: Annotated[
        int,
        whole_number(1),
        Option(
            "--num-batches",
            "-n",
            metavar="ROUNDS",
            help="Rounds of sampling, timing and training.",
            panel=_LENGTH,
        ),
    ] = 100
    budget_s: Annotated[
        float | None,
        above_zero(),
        Option(
            "--budget",
            metavar="TIME",
            help="End after this time, or soon after, with the best so far: 90s, 10m, 1.5h.",
            panel=_LENGTH,
            parse=parse_duration_s,
        ),
    ] = None
    build_jobs: Annotated[
        int | None,
        whole_number(1),
        Option(
            "--jobs",
            "-j",
            metavar="COUNT",
            help="Candidates to build at once. Default: one per core that does not measure.",
            panel=_LIMITS,
        ),
    ] = None
    search_limit_s: Annotated[
        float | None,
        above_zero(),
        Option(
            "--search-limit",
            metavar="TIME",
            help="Time limit of one search. Default: 60s, or a quarter of --budget.",
            panel=_LIMITS,
            parse=parse_duration_s,
        ),
    ] = None
    full_search_limit_s: Annotated[
        float | None,
        above_zero(),
        Option(
            "--full-search-limit",
            metavar="TIME",
            help="Time limit of the search for the default schedule. Default: 10m, or a tenth of --budget.",
            panel=_LIMITS,
            parse=parse_duration_s,
        ),
    ] = None
    memory_limit_bytes: Annotated[
        int | None,
        whole_number(1),
        Option(
            "--memory-limit",
            metavar="SIZE",
            help="Memory limit of one search, such as 4G. Default: 8G, or less on a small machine.",
            panel=_LIMITS,
            parse=parse_memory_bytes,
        ),
    ] = None


@dataclass(frozen=True)
class SearchOptions:
    """How schedules are searched."""

    technique: Annotated[
        tuple[str, ...],
        list_of(matching("[a-z0-9][a-z0-9_-]*", "a technique's name"), distinct=True),
        Option(
            "--technique",
            metavar="NAMES",
            help="How schedules are found: sampling (Halide's own search), sketches (the generator's own schedule, and"
            " rules of the trade), evolution (children of the fastest), annealing (chains of changes that a model"
            " expects to be faster), pattern (steps of the numbers of the fastest), or what installed packages have;"
            " several by commas. What finds more gets more of the time.",
            panel=_SAMPLING,
            parse=technique_names,
            complete="techniques",
        ),
    ] = (TechniqueName.SAMPLING.value, TechniqueName.SKETCHES.value, TechniqueName.EVOLUTION.value)
    model: Annotated[
        str,
        matching("[a-z0-9][a-z0-9_-]*", "a model's name"),
        Option(
            "--model",
            metavar="NAME",
            help="The model that picks the proposed schedules to time. lowered (a Gaussian process), trees (boosted"
            " trees) and tree_gru (a neural network) read the loops that Halide makes of a schedule; trees and tree_gru"
            " learn which of two is faster, trees_of_times and tree_gru_of_times learn times. gaussian_process reads"
            " the schedule alone: it is quicker and predicts less well. ensemble has gaussian_process, lowered and"
            " tree_gru together. Or the name of an installed package's model.",
            panel=_SAMPLING,
            complete="models",
        ),
    ] = "lowered"
    acquisition: Annotated[
        Acquisition,
        Option(
            "--acquisition",
            metavar="RULE",
            help="How the model's uncertainty counts: bound (prefer schedules that might be fast) or improvement"
            " (prefer the largest expected gain over the best).",
            panel=_SAMPLING,
        ),
    ] = "bound"
    batch_size: Annotated[
        int,
        whole_number(2, 1000),
        Option("--batch-size", "-s", metavar="COUNT", help="Schedules to time per round.", panel=_LENGTH),
    ] = 32
    pool_factor: Annotated[
        float,
        number(1, 100),
        Option(
            "--pool-factor", metavar="FACTOR", help="Schedules to search per schedule that is timed.", panel=_SAMPLING
        ),
    ] = 2.0
    random_share: Annotated[
        float,
        number(0, 1),
        Option(
            "--random-share",
            metavar="SHARE",
            help="Share of a round that is chosen at random, not by the cost model.",
            panel=_SAMPLING,
        ),
    ] = 0.15
    diversity: Annotated[
        float,
        number(0, 1_000_000),
        Option(
            "--diversity",
            metavar="WEIGHT",
            help="Weight of variety against predicted speed.",
            panel=_SAMPLING,
        ),
    ] = 0.5
    seed: Annotated[
        int,
        whole_number(0, _HIGHEST_SEED),
        Option("--seed", metavar="NUMBER", help="Seed of all random choices.", panel=_SAMPLING, is_fixed=True),
    ] = 0
    no_history: Annotated[
        bool,
        Option(
            "--no-history",
            help="Try no schedules that earlier runs found for this pipeline, and keep none for later ones.",
            panel=_SAMPLING,
        ),
    ] = False


@dataclass(frozen=True)
class LearnOptions:
    """How the cost model is retrained."""

    weights: Annotated[
        str | None,
        Option(
            "--weights",
            "-w",
            metavar="WEIGHTS",
            help="Weights to start from: a .weights file, a name from `sdk weights`, or baseline (Halide's). Default:"
            " the profile's, else those of the most similar target; `sdk retrain` starts from Halide's.",
            panel=_LEARNING,
            complete="weights",
            is_fixed=True,
        ),
    ] = None
    loss: Annotated[
        Loss,
        Option(
            "--loss",
            metavar="NAME",
            help="Loss function: relative_throughput (Halide's) or rank (AutoTVM's).",
            panel=_LEARNING,
            is_fixed=True,
        ),
    ] = "relative_throughput"
    epochs: Annotated[
        int,
        whole_number(1, 1_000_000),
        Option("--epochs", metavar="COUNT", help="Passes over all samples after each round.", panel=_LEARNING),
    ] = 300
    learning_rate: Annotated[
        float,
        above_zero(1),
        Option("--learning-rate", metavar="RATE", help="Adam's step size.", panel=_LEARNING),
    ] = 1e-3
    held_out_share: Annotated[
        float,
        number(0, 0.9),
        Option(
            "--held-out-share",
            metavar="SHARE",
            help="Share of the samples that validate the model, and do not train it.",
            panel=_LEARNING,
        ),
    ] = 0.2


@dataclass(frozen=True)
class RunOptions:
    """All options of a run, except its generators."""

    devices: DeviceOptions = field(default_factory=DeviceOptions)
    farm: FarmOptions = field(default_factory=FarmOptions)
    inputs: KernelInputs = field(default_factory=KernelInputs)
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    limits: Limits = field(default_factory=Limits)
    search: SearchOptions = field(default_factory=SearchOptions)
    learn: LearnOptions = field(default_factory=LearnOptions)
    play_off: PlayOffOptions = field(default_factory=PlayOffOptions)

    @classmethod
    def of(cls, **values: object) -> RunOptions:
        """Return options with values by their keywords, such as `budget_s` and `batch_size`; a time may be '10m'.

        Raises:
            UsageError: there is no such option, or its value is wrong.
        """
        return cls().with_values(values)

    def with_values(self, values: Mapping[str, object]) -> RunOptions:
        """Return the same options with other values, by their keywords.

        Raises:
            UsageError: there is no such option, or its value is wrong.
        """
        return with_values(self, complete_objective(values))
