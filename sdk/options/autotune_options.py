"""What `sdk autotune` is given beside the options of a run, and from all of it to the values that the loop needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.specification.parameter_options import ParameterOptions
from halide_autotune.devices.timing.measure_settings import KernelInputs
from halide_autotune.sdk.output import shown_path
from halide_autotune.sdk.project.file import FILE_NAME, Project, ProjectGenerator
from halide_autotune.targets.errors import UsageError
from halide_autotune.targets.generator.reference import parse_parameters
from halide_autotune.targets.pipeline.estimates import EstimateOptions
from halide_autotune.targets.toolchain.cpp_build import CppBuild
from halide_autotune.targets.values.checks import nearest_hint
from halide_autotune.targets.values.options import (
    Option,
    option_of,
    options_of,
    value_at,
    with_values,
    with_whole_paths,
)
from halide_autotune.targets.values.texts import parse_estimates

if TYPE_CHECKING:
    from halide_autotune.sdk.options.generator_spec import GeneratorSpec

_WHAT = "What is tuned"
_FOLDER = "Run folder"
_OUTPUT = "What is printed"
# Of a command for one generator: all but how many it takes, and what else is tuned.
ONE_GENERATOR = (
    "parameters",
    *(option.keyword for kind in (CppBuild, EstimateOptions) for option in options_of(kind)),
)
# Only a run has several sizes.
CALLED_WITH = tuple(option.keyword for option in options_of(KernelInputs) if option.keyword != "also_sizes")
# Options of texts, since they take names as well.
_NAMES_OR_PATHS = ("target", "weights")
_SETS_OPTION = "--generator-arg-sets"
_SETS_EXAMPLE = 'Write sets with spaces between them and ; inside a set, such as "radius=1;tiles=2 radius=3".'


@dataclass(frozen=True)
class GeneratorOptions:
    """What is tuned."""

    generator: Annotated[
        tuple[str, ...],
        Option(
            metavar="GENERATOR",
            help="path.py[:name], path.cpp[:name], a built path.generator[:name], or a name of sdk.toml; several are"
            " tuned in one run. With --resume: the folder of a run.",
            complete="resumed",
            is_argument=True,
        ),
    ] = ()
    parameters: Annotated[
        tuple[str, ...],
        Option(
            "--parameter",
            "-p",
            metavar="KEY=VALUE",
            help="A generator parameter; repeat for more.",
            panel=_WHAT,
            is_fixed=True,
        ),
    ] = ()
    argument_sets: Annotated[
        str | None,
        Option(
            "--generator-arg-sets",
            metavar="SETS",
            help='Tune for several sets of parameters: spaces between sets, ; inside one ("a=1;b=2 a=3").',
            panel=_WHAT,
            is_fixed=True,
        ),
    ] = None
    function_name: Annotated[
        str | None,
        Option(
            "--function-name",
            "-f",
            metavar="NAME",
            help="Name of the tuned function. Default: the generator's.",
            panel=_WHAT,
            is_fixed=True,
        ),
    ] = None
    build: CppBuild = field(default_factory=CppBuild)
    tuned: ParameterOptions = field(default_factory=ParameterOptions)
    estimates: EstimateOptions = field(default_factory=EstimateOptions)


@dataclass(frozen=True)
class CommandOptions:
    """What the command does with the run."""

    run_folder: Annotated[
        Path | None,
        Option(
            "--run-dir",
            "-b",
            metavar="FOLDER",
            help="Folder of the run. Default: a new tuned/NAME-PROFILE-1, -2 and so on.",
            panel=_FOLDER,
        ),
    ] = None
    resume: Annotated[
        bool,
        Option(
            "--resume",
            help="Continue the run in the given folder, else the newest one. No other option is needed.",
            panel=_FOLDER,
        ),
    ] = False
    replay: Annotated[
        Path | None,
        Option(
            "--replay",
            metavar="RUN",
            help="Try other options on a recorded run, without a device: its schedules and their times are reused.",
            panel=_FOLDER,
            complete="runs",
        ),
    ] = None
    notify: Annotated[
        tuple[str, ...],
        Option(
            "--notify",
            metavar="PROGRAM|URL",
            help="When the run has ended, start a program with the result as JSON on its standard input, or post that"
            " to an https:// URL; repeat for more. Default: what notify.toml in your settings names; none for nobody.",
            panel=_OUTPUT,
        ),
    ] = ()
    as_json: Annotated[
        bool,
        Option(
            "--json",
            help="Print each event as a line of JSON, the result last; with --quiet, print only the result.",
            panel=_OUTPUT,
        ),
    ] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print only the result.", panel=_OUTPUT)] = False
    plain: Annotated[
        bool,
        Option("--plain", help="Print lines instead of the live view (the default without a terminal).", panel=_OUTPUT),
    ] = False
    verbose: Annotated[
        bool,
        Option("--verbose", "-v", help="As --plain, with every new best, stage and training.", panel=_OUTPUT),
    ] = False


@dataclass(frozen=True)
class ProjectValue:
    """An option's value in `sdk.toml`.

    Attributes:
        table: where it stands: '[autotune]', '[target.arm64]', or a key at the top such as 'budget'.
    """

    value: object
    table: str


def project_values(project: Project, target: str | None = None) -> dict[str, ProjectValue]:
    """The options that `sdk.toml` gives for every run, and for runs of a target: by keyword.

    They are those of `[autotune]`, `budget` and `default_target`, and over them those of `[target.PROFILE]`. A path in
    place of a name is relative to the file.

    Raises:
        UsageError: there is no such option, or its value is wrong; the message names the file.
    """
    file = project.folder / FILE_NAME
    known = {option.file_key: option for option in options_of(RunOptions)}
    tables = {"[autotune]": project.autotune}
    if target is not None and target in project.target:
        tables[f"[target.{target}]"] = project.target[target]
    values: dict[str, ProjectValue] = {}
    if project.budget is not None:
        values["budget_s"] = ProjectValue(known["budget"].read(project.budget, f"{file}: budget"), "budget")
    if project.default_target is not None:
        values["target"] = ProjectValue(_beside_file(project.default_target, project), "default_target")
    for table, options in tables.items():
        for key, value in options.items():
            if key not in known:
                raise UsageError(f"{file}: unknown key '{key}' in {table}{nearest_hint(key, known)}.")
            if key == "target" and table != "[autotune]":
                raise UsageError(f"{file}: {table} is for that target.", next_step="Leave 'target' out of it.")
            read = known[key].read(value, f"{file}: {key}")
            if key in _NAMES_OR_PATHS and read is not None:
                read = _beside_file(read, project)
            values[known[key].keyword] = ProjectValue(read, table)
    return values


def _beside_file(text: str, project: Project) -> str:
    """A text that may be a path, which is then relative to the file; a name stays."""
    return str(project.folder / text) if "/" in text or text.endswith((".toml", ".weights")) else text


def project_options(project: Project, target: str | None = None) -> RunOptions:
    """The options of `project_values`, whose paths are relative to the file.

    Raises:
        UsageError: as `project_values`.
    """
    values = {keyword: each.value for keyword, each in project_values(project, target).items()}
    return with_whole_paths(RunOptions().with_values(values), project.folder)


def run_options(values: Mapping[str, Any], project: Project) -> RunOptions:
    """What a new run is asked: what is typed, over what `sdk.toml` says.

    Args:
        values: by their keywords; those that are no options of a run are passed over.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    known = {option.keyword for option in options_of(RunOptions)}
    chosen = {keyword: value for keyword, value in values.items() if keyword in known}
    target = target_of(chosen, project)
    if chosen.get("device") and "target" not in chosen:
        chosen["target"] = None  # the project's default gives way to devices that are named
    return project_options(project, target).with_values(chosen)


def target_of(chosen: Mapping[str, Any], project: Project) -> str | None:
    """The target whose table of `sdk.toml` counts; None where there is no such table.

    Args:
        chosen: the options that are typed, by their keywords.

    Raises:
        UsageError: a table is for no known target; or a device is not in the inventory.
    """
    if not project.target:
        return None
    from halide_autotune.sdk.inventory.lookup import open_inventory
    from halide_autotune.sdk.select.chosen_devices import DEFAULT_TARGET
    from halide_autotune.sdk.select.device_choice import profile_of_devices
    from halide_autotune.sdk.settings import read_settings
    from halide_autotune.targets.profile.loader import profile_names

    settings = read_settings()
    profiles = profile_names(settings.profile_folder)
    for name in project.target:
        if name not in profiles:
            where = f"{project.folder / FILE_NAME}: [target.{name}]"
            raise UsageError(f"{where} is for no target profile{nearest_hint(name, profiles)}.")
    asked = project_options(project).devices
    if chosen.get("target"):
        return str(chosen["target"])
    devices = chosen.get("device") or asked.device
    of_devices = profile_of_devices(devices, open_inventory(chosen.get("inventory") or asked.inventory, settings))
    return of_devices or (asked.target if not chosen.get("device") else None) or DEFAULT_TARGET


def chosen_options(values: Mapping[str, Any], project: Project, taken: Collection[str]) -> RunOptions:
    """What a command that is no run is asked: what is typed, over what `sdk.toml` says of the options that it takes.

    Args:
        values: as for `run_options`.
        taken: the keywords of the command's options.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    asked = run_options(values, project)
    return RunOptions().with_values(
        {option.keyword: value_at(asked, option) for option in options_of(RunOptions) if option.keyword in taken}
    )


def given_generator(generator: str | None, values: Mapping[str, Any], project: Project) -> GeneratorSpec:
    """The one generator of a command, by what is typed and what `sdk.toml` says of it.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    from halide_autotune.sdk.options.generator_spec import GeneratorSpec

    entry = project.named(generator)
    return GeneratorSpec(
        entry.generator,
        (*entry.parameters, *values.get("parameters", ())),
        function_name=values.get("function_name", entry.function_name),
        build=given_build(values, entry),
        estimates=_given_estimates(values, entry),
    )


def given_generators(values: Mapping[str, Any], project: Project) -> tuple[GeneratorSpec, ...]:
    """What is to be tuned. Generators of the project have parameters of their own, which the command line's come after.

    Raises:
        UsageError: one message about the first value that is wrong.
    """
    # Imported here: every command pays for what this module imports.
    from halide_autotune.sdk.options.generator_spec import GeneratorSpec
    from halide_autotune.sdk.project.preparation import check_function_name

    sets, parameters = values.get("argument_sets"), tuple(values.get("parameters", ()))
    parse_parameters(parameters)
    name = values.get("function_name")
    if name is not None:
        check_function_name(name)
    wanted = project.resolve_all(values.get("generator", ()))
    own = ("argument_sets", "function_name", "tune", "restrict", "search_too")
    given = next((keyword for keyword in own if values.get(keyword)), None)
    if len(wanted) > 1 and given is not None:
        raise UsageError(
            f"{option_of(GeneratorOptions, given).label} cannot be given to several generators.",
            next_step=f"Write it into [[generators]] of {FILE_NAME}.",
        )
    specs = []
    for entry in wanted:
        text = entry.argument_sets if sets is None else sets
        spec = GeneratorSpec(
            generator=shown_path(entry.generator),
            parameters=(*entry.parameters, *parameters),
            argsets=((),) if text is None else parse_argument_sets(text),
            function_name=name or entry.function_name,
            incumbent=None if entry.incumbent is None else Path(entry.incumbent),
            build=given_build(values, entry),
            tune=values.get("tune", entry.tune),
            restrict=values.get("restrict", entry.restrict),
            search_too=values.get("search_too", entry.search_too),
            estimates=_given_estimates(values, entry),
        )
        specs.append(spec)
    return tuple(specs)


def given_build(values: Mapping[str, Any], entry: ProjectGenerator) -> CppBuild:
    """How a generator is built: what is typed, over what `sdk.toml` says.

    Args:
        values: by their keywords; others are passed over.

    Raises:
        UsageError: a value is wrong.
    """
    typed = {option.keyword: values[option.keyword] for option in options_of(CppBuild) if option.keyword in values}
    return with_values(entry.build, typed)


def _given_estimates(values: Mapping[str, Any], entry: ProjectGenerator) -> EstimateOptions:
    """What a generator is tuned for: what is typed, over what `sdk.toml` says.

    Raises:
        UsageError: a value of `sdk.toml` is wrong.
    """
    of_project = parse_estimates(f"{name}={text}" for name, text in entry.estimates.items())
    return EstimateOptions(
        {**of_project, **values.get("estimates", {})},
        values.get("default_estimates", entry.default_estimates),
    )


def parse_argument_sets(text: str) -> tuple[tuple[str, ...], ...]:
    """Return each set of `--generator-arg-sets` as its `key=value` items.

    As in Halide's loop there are spaces between sets, and ; inside a set.

    Raises:
        UsageError: there is no set, an item is not `key=value`, a set names a key twice, or two sets are equal.
    """
    sets = tuple(tuple(item for item in part.split(";") if item) for part in text.split())
    if not sets or not all(sets):
        raise UsageError(f"{_SETS_OPTION} {text!r} has an empty set.", next_step=_SETS_EXAMPLE)
    seen: list[dict[str, str]] = []
    for items in sets:
        try:
            parameters = parse_parameters(items)
        except UsageError as error:
            raise UsageError(f"{_SETS_OPTION}: {error.message}", next_step=_SETS_EXAMPLE) from error
        if len(parameters) < len(items):
            raise UsageError(f"{_SETS_OPTION}: the set {';'.join(items)!r} names a parameter twice.")
        if parameters in seen:
            raise UsageError(f"{_SETS_OPTION}: the set {';'.join(items)!r} is there twice.")
        seen.append(parameters)
    return sets
