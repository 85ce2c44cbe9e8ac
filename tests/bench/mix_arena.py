"""`python -m tests.bench.mix_arena MIXES.jsonl > ANSWERS.jsonl`: the optimizer before a referee.

Reads one mix a line ({"id", "types", "demand", …}) and writes one answer a line ({"id", "replicas",
"seconds"}). `seconds` is the time of the solver alone, reading and writing left out: processor
time, which other work on the machine doesn't change, or with `--wall` what a clock says. The
slowest solves are told on standard error.
"""

import argparse
import heapq
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.arena import mix

_SLOWEST = 5


def answers(
    lines: Iterable[str], clock_ns: Callable[[], int] = time.process_time_ns
) -> Iterator[dict[str, Any]]:
    """The answer to each mix, in order; `clock_ns` is read before and after each solve."""
    solve = mix()
    for line in lines:
        document = json.loads(line)
        began_ns = clock_ns()
        replicas = solve(document)
        seconds = (clock_ns() - began_ns) / 1e9
        yield {"id": document["id"], "replicas": replicas, "seconds": seconds}


def main(argv: Sequence[str]) -> int:
    """Answer every mix of one file."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.mix_arena", description=__doc__)
    parser.add_argument("--wall", action="store_true", help="time by the clock on the wall")
    parser.add_argument("mixes", type=Path)
    arguments = parser.parse_args(argv)
    clock_ns = time.perf_counter_ns if arguments.wall else time.process_time_ns
    slowest: list[tuple[float, int]] = []
    with arguments.mixes.open() as lines:
        for answer in answers(lines, clock_ns):
            print(json.dumps(answer))
            slowest = heapq.nlargest(_SLOWEST, [*slowest, (answer["seconds"], answer["id"])])
    told = ", ".join(f"{1000 * seconds:.1f} ms (mix {number})" for seconds, number in slowest)
    sys.stderr.write(f"slowest: {told}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
