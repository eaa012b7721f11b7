"""`sdk.autotune` and `sdk.resume` with every option as a keyword argument, as tests write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from halide_autotune.autotune_loop.run.result import TuneResult
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.sdk import GeneratorSpec, autotune
from halide_autotune.sdk import resume as resume_run

_FOR_THE_CALL = ("target", "device", "run_folder", "listen", "stop", "settings")


def tune_flat(
    generator: str | Sequence[str | GeneratorSpec],
    *,
    parameters: Iterable[str] = (),
    argsets: Sequence[Iterable[str]] = ((),),
    function_name: str | None = None,
    tune: Mapping[str, str] | None = None,
    restrict: Iterable[str] = (),
    search_too: bool = False,
    resume: bool = False,
    **values: Any,
) -> TuneResult:
    """Tune, or go on with a run; what is not of the call itself is an option.

    What must be beaten is the default, unless a test asks for the generator's own schedule; and what other tests have
    found is not taken, unless a test asks for it.
    """
    call = {name: values.pop(name) for name in _FOR_THE_CALL if name in values}
    usual = {"ignore_own_schedule": True, "no_history": True}
    if resume:
        values = {name: value for name, value in values.items() if name not in usual}
        call.pop("target", None)
        if isinstance(device := call.pop("device", ()), str) or device:
            values["device"] = [device] if isinstance(device, str) else device
        return resume_run(call.pop("run_folder"), changes=values, **call)
    sets = tuple(tuple(items) for items in argsets)
    given = [generator] if isinstance(generator, str) else generator
    specs = [GeneratorSpec(item, tuple(parameters), sets) if isinstance(item, str) else item for item in given]
    if tune is not None:
        specs = [replace(spec, tune=tune, restrict=tuple(restrict), search_too=search_too) for spec in specs]
    if function_name is not None:
        specs = [replace(spec, function_name=function_name) for spec in specs]
    return autotune(specs, options=RunOptions.of(**usual | values), **call)
