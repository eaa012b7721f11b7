"""Android's names: of the variables that say where its tools are, and of its targets."""

from __future__ import annotations

from collections.abc import Mapping

# The first that is set wins; else the newest NDK in the folder `ndk` of the Android SDK.
NDK_VARIABLES = ("ANDROID_NDK_ROOT", "ANDROID_NDK_HOME", "ANDROID_NDK")
SDK_VARIABLE = "ANDROID_HOME"
# The NDK's names for the architectures of zig's triples.
ANDROID_TRIPLES: Mapping[str, str] = {
    "aarch64": "aarch64-linux-android",
    "arm": "armv7a-linux-androideabi",
    "x86_64": "x86_64-linux-android",
}
