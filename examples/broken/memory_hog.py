"""For tests: a generator that takes memory without end. Run it under a memory limit."""

import halide as hl

STEP_BYTES = 32 * 1024 * 1024


@hl.generator(name="memory_hog")
class MemoryHog(hl.Generator):
    output = hl.OutputBuffer(hl.UInt(8), 2)

    def generate(self) -> None:
        hoard: list[bytes] = []
        while True:
            hoard.append(b"\x01" * STEP_BYTES)  # written, so that the memory is really taken


if __name__ == "__main__":
    hl.main()
