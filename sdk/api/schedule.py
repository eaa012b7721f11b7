"""`sdk.own_schedule` and `sdk.shown_schedule`: schedules as data."""

from __future__ import annotations

from pathlib import Path

from halide_autotune.autotune_loop.schedule.as_json import parse_json
from halide_autotune.autotune_loop.schedule.model import Schedule
from halide_autotune.autotune_loop.schedule.parse import parse_shipped_schedule
from halide_autotune.autotune_loop.schedule.reading.pipeline import ReadSchedule, read_schedule
from halide_autotune.autotune_loop.schedule.show import ShowFormat, show_schedule
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk.options.generator_spec import GeneratorSpec, asked_options, generator_specs
from halide_autotune.sdk.project.preparation import named_profile, open_named_generator, open_workbench
from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.errors import GeneratorError
from halide_autotune.targets.pipeline.inspection import Inspected
from halide_autotune.targets.schedule.header import read_schedule as read_header
from halide_autotune.targets.schedule.pipeline_schedule import read_pipeline


def own_schedule(
    generator: str | GeneratorSpec, *, options: RunOptions | None = None, settings: Settings | None = None
) -> ReadSchedule:
    """The schedule that a generator's author wrote for a target, as data.

    Args:
        generator: as for `build`.
        options: those of the devices, of which the target and its features count.

    Raises:
        SdkError: one of its children, for everything that a user can fix.
    """
    (spec,) = generator_specs(generator)
    settings = settings or read_settings()
    asked = asked_options(options)
    profile = named_profile(asked.devices, settings)
    bench = open_workbench(settings)
    with open_named_generator(spec.generator, spec.parameters, bench, settings, spec.build) as (reference, program):
        assert reference.name is not None
        inspected = Inspected(program, reference.name, reference.parameters, profile.halide_target)
        pipeline = read_pipeline(inspected, bench.compiler)
    return read_schedule(pipeline.scheduled, pipeline.plain)


def shown_schedule(schedule: Schedule | Path, form: ShowFormat = ShowFormat.LOOPS) -> str:
    """A schedule as text.

    Args:
        schedule: data, or the path of a header or of JSON that this function gave.

    Raises:
        GeneratorError: the file cannot be read, or is not a schedule; or Halide's Python cannot say the schedule.
    """
    if isinstance(schedule, Path):
        schedule = _read_file(schedule)
    return show_schedule(schedule, form)


def _read_file(path: Path) -> Schedule:
    try:
        text = read_header(path) if path.suffix != ".json" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GeneratorError(
            f"The schedule {path} cannot be read: {error}.", next_step="Check the path and its permissions."
        ) from error
    try:
        return parse_json(text) if path.suffix == ".json" else parse_shipped_schedule(text)
    except GeneratorError as error:
        raise GeneratorError(f"{path}: {error.message}", next_step=error.next_step) from error
