"""A notifier: a line in a file for each run. `sdk autotune … --notify lab-log` writes into ~/sdk-runs.log."""

import json
import sys
from pathlib import Path


def main() -> int:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.home() / "sdk-runs.log"
    told = json.load(sys.stdin)
    with file.open("a") as log:
        log.write(f"{told['text']} ({told['run_folder']})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
