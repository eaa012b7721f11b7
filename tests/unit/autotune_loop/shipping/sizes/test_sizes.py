"""Sizes that schedules are tried at, and what is made of the outcomes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.shipping.files.guard_header import KernelArgument, read_signature
from halide_autotune.autotune_loop.shipping.generator_sources import GeneratorSources
from halide_autotune.autotune_loop.shipping.proven_schedule import ProvenSchedule, prove_schedule
from halide_autotune.autotune_loop.shipping.sizes.request import (
    OutputSize,
    SizeOutcome,
    SizeVerdict,
    argument_sizes,
    neighbouring_sizes,
    parse_accepted_size,
    parse_output_size,
)
from halide_autotune.autotune_loop.shipping.sizes.trial import TriedSizes, check_acceptance, try_sizes
from halide_autotune.autotune_loop.specification.options import DeviceOptions
from halide_autotune.sdk.project.preparation import Workbench
from halide_autotune.sdk.select.trial_place import open_trial_place
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import GeneratorError, UsageError
from halide_autotune.targets.generator.program import open_generator
from halide_autotune.targets.generator.reference import parse_generator
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.profile.loader import load_profile
from tests.tuned_run_folder import read_run_schedules, write_tuned_run
from tests.unit.autotune_loop.shipping.conftest import GENERATORS, SDK_VERSION, ShippedProduct

SIGNATURE = (
    KernelArgument("input", "halide_buffer_t", False, ((0, 1920), (0, 1080), (0, 3))),
    KernelArgument("curve", "halide_buffer_t", False, ((0, 256),)),
    KernelArgument("gain", "float", False, ()),
    KernelArgument("output", "halide_buffer_t", True, ((0, 1920), (0, 1080), (0, 3))),
)


def test_buffers_follow_the_output() -> None:
    sizes = argument_sizes(SIGNATURE, parse_output_size("640x480@3x-5"))
    assert sizes == {"input": "640x480x3@3x-5x0", "curve": "256@0", "output": "640x480x3@3x-5x0"}
    with pytest.raises(UsageError, match="has 4 dimensions, but the output output has 3"):
        argument_sizes(SIGNATURE, parse_output_size("1x2x3x4"))


def test_a_size_may_be_of_one_generator() -> None:
    assert parse_accepted_size("blur=64x48@1x2") == ("blur", OutputSize((64, 48), (1, 2)))
    assert parse_accepted_size("64x48") == ("", OutputSize((64, 48)))


def test_neighbours_leave_channels_alone() -> None:
    texts = [size.text for size in neighbouring_sizes(SIGNATURE)]
    assert texts == ["1920x1080", "1919x1079@3x-5", "131x67", "7x5", "1x1"]
    planes_first = (KernelArgument("output", "halide_buffer_t", True, ((0, 3), (0, 64), (0, 32), (0, 8))),)
    texts = [size.text for size in neighbouring_sizes(planes_first)]
    assert texts == ["3x64x32", "3x63x31@0x3x-5", "3x7x5", "3x1x1"]
    assert neighbouring_sizes((replace(SIGNATURE[3], estimates=((0, 3),)),)) == (OutputSize((3,)),)


@pytest.mark.parametrize("text", ["", "x", "12x", "12x-3", "1 x2", "12x3@4", "12@4x5", "12x3@", "1e3x2", "٣x2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_output_size(text)


def kernel(**argument: object) -> list[dict[str, object]]:
    item = {"name": "out$2", "kind": "output_buffer", "type_code": "uint", "bits": 8, "estimates": [[0, 8]]}
    return [{"event": "kernel", "name": "tuned", "arguments": [{**item, **argument}]}]


def test_a_number_has_no_sizes() -> None:
    signature = read_signature(kernel(estimates=[]), "tuned")
    assert neighbouring_sizes(signature) == ()
    with pytest.raises(UsageError, match="no output with dimensions and estimates"):
        argument_sizes(signature, parse_output_size("64x48"))


def test_a_signature_is_not_trusted() -> None:
    assert read_signature(kernel(), "tuned") == (KernelArgument("out", "halide_buffer_t", True, ((0, 8),)),)
    for damage in ({"name": "a;b"}, {"estimates": [[0, 2**40]]}, {"estimates": 3}, {"estimates": [[0, "8"]]}):
        with pytest.raises(GeneratorError, match="cannot be read"):
            read_signature(kernel(**damage), "tuned")
    with pytest.raises(GeneratorError, match="cannot be read"):
        read_signature(kernel(), "other")


ACCEPTED, REFUSED, WRONG = (SizeOutcome("8x8", verdict, "") for verdict in list(SizeVerdict)[:3])


@pytest.mark.parametrize(
    ("asked", "neighbour", "guard", "ships"),
    [
        (ACCEPTED, ACCEPTED, False, True),
        (ACCEPTED, REFUSED, False, True),
        (REFUSED, ACCEPTED, False, False),
        (REFUSED, REFUSED, True, True),
        (ACCEPTED, WRONG, True, False),
        (WRONG, ACCEPTED, True, False),
    ],
)
def test_who_ships(asked: SizeOutcome, neighbour: SizeOutcome, guard: bool, ships: bool) -> None:
    with contextlib.nullcontext() if ships else pytest.raises(GeneratorError, match=r"blur\.h is not shipped: at 8x8"):
        check_acceptance("blur.h", TriedSizes(SIGNATURE, (asked, neighbour), asked=1), guard)


# A schedule that is none: it changes the result.
OTHER_RESULT = """\
    struct Subtract : Halide::Internal::IRMutator {
        using IRMutator::visit;
        Halide::Expr visit(const Halide::Internal::Add *sum) override { return mutate(sum->a) - mutate(sum->b); }
    } subtract;
    pipeline.outputs()[0].function().mutate(&subtract);
"""


@pytest.fixture
def proven(ship_product: Callable[[str], ShippedProduct], sources: GeneratorSources) -> Iterator[ProvenSchedule]:
    folder = ship_product("product.py").runs[0]
    (run,) = read_run_schedules(folder)
    with sources.open(run) as program:
        yield prove_schedule(run, program, sources.compiler, SDK_VERSION)


def test_a_schedule_is_tried_on_its_device(
    proven: ProvenSchedule, sources: GeneratorSources, settings: Settings
) -> None:
    """Mullapudi2016's tiles are larger than the smallest sizes; and a wrong schedule is found out."""
    workbench = Workbench(sources.halide, ContentCache(settings.cache_folder), sources.compiler)
    place = open_trial_place(proven.run, DeviceOptions(), workbench, settings, lambda step: None)
    assert place.device.kind == proven.run.record.made_with.devices[0]
    asked = [parse_output_size("96x64@-7x9"), parse_output_size("2x1")]
    tried = try_sizes(proven, asked, place, lambda step: None, neighbours=True)
    verdicts = {outcome.size: outcome for outcome in tried.outcomes}
    assert tried.asked == 2 and list(verdicts)[:2] == ["96x64@-7x9", "2x1"]
    assert verdicts["96x64@-7x9"].verdict is verdicts["96x64"].verdict is SizeVerdict.ACCEPTED
    assert verdicts["1x1"].verdict is SizeVerdict.REFUSED
    assert "Output buffer output is accessed at" in verdicts["1x1"].message
    check = "    ::halide_sdk_1::check_pipeline("
    wrong = replace(proven, header_text=proven.header_text.replace(check, OTHER_RESULT + check))
    tried = try_sizes(wrong, asked[:1], place, lambda step: None, neighbours=False)
    assert tried.outcomes[0].verdict is SizeVerdict.WRONG_OUTPUT and "elements of output differ" in str(tried.outcomes)


def test_where_the_plain_schedule_cannot_run_the_generators_own_is_compared_with(
    sources: GeneratorSources, settings: Settings, tmp_path: Path
) -> None:
    generator = GENERATORS / "every_pair.py"
    program = open_generator(parse_generator(str(generator)), sources.halide, sources.compiler, sources.environment)
    workbench = Workbench(sources.halide, ContentCache(settings.cache_folder), sources.compiler)
    with contextlib.closing(program):
        write_tuned_run(tmp_path, generator, program, load_profile("x86-64"), sources.halide)
        (run,) = read_run_schedules(tmp_path)
        place = open_trial_place(run, DeviceOptions(), workbench, settings, lambda step: None)
        proven = prove_schedule(run, program, sources.compiler, SDK_VERSION)
        outcomes = {}
        for schedules_itself in (False, True):
            tasks = (replace(run.task, schedules_itself=schedules_itself),)
            record = replace(run.record, spec=replace(run.record.spec, tasks=tasks))
            tried = try_sizes(
                replace(proven, run=replace(run, record=record)), [], place, lambda step: None, neighbours=True
            )
            outcomes[schedules_itself] = {outcome.size: outcome for outcome in tried.outcomes}
    uncompared = outcomes[False]["512x384"]
    assert uncompared.verdict is SizeVerdict.REFUSED
    assert uncompared.message.startswith(
        "Its output cannot be compared. A plain schedule, with every Func at the root,"
    )
    assert outcomes[True]["512x384"] == SizeOutcome("512x384", SizeVerdict.ACCEPTED, "")
    assert outcomes[False]["131x67"] == outcomes[True]["131x67"], "both are compared with the plain schedule"
