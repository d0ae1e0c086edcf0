#!/usr/bin/env python3
"""`tenon plan` beside minimalloc on its hard sets: the first table of bench/results/packing.md, to standard output.

usage: bench/replay/beside_minimalloc.py build/release/bin/tenon MINIMALLOC [--rounds 5] SET.CAPACITY.csv...

MINIMALLOC is the program that google/minimalloc builds. Each packs each set under the capacity that its name ends with, in turn,
so many times. Seconds of a processor, each process as a whole; the median, and in brackets the least and the most. Exit code 1 where
one finds no packing, or where Tenon takes as long as minimalloc.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile


def seconds_of(command):
    """Of a processor; None where it found no packing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) if done.returncode == 0 else None


def cell(seconds):
    if None in seconds:
        return "no packing"
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("minimalloc")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("problems", nargs="+")
    asked = parser.parse_args()
    is_behind = False
    print("| set | buffers | minimalloc, s | Tenon, s | ratio of the medians |")
    print("|---|---:|---|---|---:|")
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "packed.csv")
        for problem in asked.problems:
            name, capacity, _ = os.path.basename(problem).rsplit(".", 2)
            commands = {
                "minimalloc": [asked.minimalloc, f"--input={problem}", f"--capacity={capacity}", f"--output={output}"],
                "tenon": [asked.tenon, "plan", problem, "--capacity", capacity, "-o", output, "--quiet"],
            }
            took = {who: [] for who in commands}
            for _ in range(asked.rounds):
                for who, command in commands.items():
                    took[who].append(seconds_of(command))
            with open(problem, encoding="ascii") as lines:
                buffers = sum(1 for _ in lines) - 1
            is_found = None not in took["tenon"] + took["minimalloc"]
            ratio = statistics.median(took["tenon"]) / statistics.median(took["minimalloc"]) if is_found else float("nan")
            is_behind |= not ratio < 1
            print(f"| {name} | {buffers} | {cell(took['minimalloc'])} | {cell(took['tenon'])} | {ratio:.3f} |", flush=True)
    sys.exit(1 if is_behind else 0)


if __name__ == "__main__":
    main()
