"""A folder laid out as an Android NDK, with a real compiler behind its programs: zig's, for glibc instead of bionic."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

API_LEVEL = 28
REVISION = "26.1.10909125"
TRIPLE = "aarch64-linux-android"
GLIBC_TRIPLE = "aarch64-linux-gnu.2.28"
# Programs of this NDK want this emulator, as bionic's would want a phone.
EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")

_LOG_SOURCE = """
#include <stdarg.h>
#include <stdio.h>
int __android_log_print(int priority, const char *tag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "log %d of %s: ", priority, tag);
    const int written = vfprintf(stderr, format, arguments);
    va_end(arguments);
    return written;
}
"""


def make_stand_in_ndk(root: Path, zig_cache_dir: Path) -> Path:
    """Lay out an NDK in `root`: its compiler for 64-bit ARM, its log library, its version."""
    programs = root / "toolchains" / "llvm" / "prebuilt" / "linux-x86_64" / "bin"
    libraries = root / "toolchains" / "llvm" / "prebuilt" / "linux-x86_64" / "sysroot"
    for folder in (programs, libraries, zig_cache_dir):
        folder.mkdir(parents=True, exist_ok=True)
    (root / "source.properties").write_text(f"Pkg.Desc = Android NDK\nPkg.Revision = {REVISION}\n")
    zig = [sys.executable, "-m", "ziglang"]
    compiler = programs / f"{TRIPLE}{API_LEVEL}-clang"
    compiler.write_text(
        "#!/usr/bin/env sh\n"
        f"export ZIG_GLOBAL_CACHE_DIR={shlex.quote(str(zig_cache_dir))}\n"
        f"export ZIG_LOCAL_CACHE_DIR={shlex.quote(str(zig_cache_dir))}\n"
        f'exec {shlex.join([*zig, "cc", "-target", GLIBC_TRIPLE, "-L", str(libraries)])} "$@"\n'
    )
    compiler.chmod(0o755)
    (libraries / "log.c").write_text(_LOG_SOURCE)
    subprocess.run([str(compiler), "-O2", "-fPIC", "-c", "log.c", "-o", "log.o"], cwd=libraries, check=True)
    subprocess.run([*zig, "ar", "rc", "liblog.a", "log.o"], cwd=libraries, check=True)
    return root
