"""A folder laid out as Qualcomm's Hexagon SDK: its programs are there, and do nothing."""

from __future__ import annotations

from pathlib import Path

TOOLS_VERSION = "8.5.13"


def make_stand_in_hexagon_sdk(root: Path) -> Path:
    """Lay out an SDK in `root`."""
    tools = root / "tools" / "HEXAGON_Tools" / TOOLS_VERSION / "Tools"
    programs = [
        tools / "bin" / "hexagon-clang",
        tools / "bin" / "hexagon-sim",
        root / "libs" / "run_main_on_hexagon" / "ship" / "android_aarch64" / "run_main_on_hexagon",
        root / "utils" / "scripts" / "signer.py",
    ]
    for program in programs:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
    for version in ("v65", "v66", "v68", "notes"):
        (tools / "target" / "hexagon" / "lib" / version).mkdir(parents=True)
    return root
