"""What is loaded before Halide, as the dynamic loader takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.targets.errors import ToolchainError
from halide_autotune.targets.generator.preload import Preload


def test_libraries_are_named_in_order_beside_the_variables() -> None:
    made = Preload(Path("/a/plugin.so"), {"REPORT": "here"}).environment({"PATH": "/bin"}, Path("/b/libHalide.so"))
    assert made == {"PATH": "/bin", "REPORT": "here", "LD_PRELOAD": "/a/plugin.so:/b/libHalide.so"}


@pytest.mark.parametrize("folder", ["/my cache", "/a:b", "/tab\there"])
def test_a_path_that_the_loader_would_split_is_told(folder: str) -> None:
    with pytest.raises(ToolchainError, match="its path has white space or a colon") as refused:
        Preload(Path("/a/plugin.so")).environment({}, Path(folder) / "libHalide.so")
    assert "SDK_CACHE_DIR" in refused.value.next_step
