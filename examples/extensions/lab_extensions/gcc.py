"""A toolchain: Debian's gcc of the target, and its glibc: `apt-get install gcc-aarch64-linux-gnu`."""

from sdk import CompilerCommands, ToolchainChoice


def gcc(choice: ToolchainChoice) -> CompilerCommands:
    name = "-".join(choice.triple.partition(".")[0].split("-")[:3])
    tuned = () if choice.cpu is None else (f"-mcpu={choice.cpu}",)
    return CompilerCommands(
        c=(f"{name}-gcc", *tuned),
        cpp=(f"{name}-g++", *tuned),
        library="Debian's glibc, dynamic",
    )
