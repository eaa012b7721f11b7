"""The public surface: what `import sdk` offers, exactly."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sdk


@pytest.mark.parametrize("name", sdk.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name: str) -> None:
    assert getattr(sdk, name).__doc__ or name == "Event"


def test_nothing_else_is_offered() -> None:
    assert dir(sdk) == sorted(sdk.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sdk.nothing  # noqa: B018 – looking it up is the test


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "{'tensorflow', 'distributed', 'halide', 'numpy', 'rich'}"
    code = f"import sdk, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
