"""CMake as the development environment has it: Halide's package needs a newer one than Debian 12's."""

from __future__ import annotations

import sys
from pathlib import Path

CMAKE = Path(sys.executable).with_name("cmake")
