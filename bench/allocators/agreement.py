#!/usr/bin/env python3
"""Holds `tenon bench` against tenon_allocator_bench: the same loops and plugins, two ways to take the time.

    bench/allocators/agreement.py [--build build/release] [--turns 10] [SPEC …]

Each turn runs two rounds of `tenon bench` and, for each workload and allocator, Google Benchmark in a process of its own,
on one core after the other. A process is one observation: where memory lies decides a percent or two, and is drawn anew
with each. Intervals are those of the medians, 95 %, by order statistics; "agree" is that they overlap. Exit code 1 where
a pair of them does not.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

WORKLOADS = ["hot/4KiB", "hot/64MiB", "lifo/1000", "random/1000", "random/10000", "cached/1000", "streams/4"]


def interval(samples, confidence=0.95):
    """Of the median: from the rank at which fewer than (1 - confidence) / 2 of all outcomes lie below."""
    ordered, below, rank = sorted(samples), 0.0, 0
    while 2 * rank < len(ordered):
        below += math.comb(len(ordered), rank) / 2 ** len(ordered)
        if below > (1 - confidence) / 2:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[-rank]


def verb(arguments, seed):
    command = [f"{arguments.build}/bin/tenon", "bench", *arguments.specs, "--rounds", "2", "--seed", str(seed), "--json"]
    command += [word for name in WORKLOADS for word in ("-w", name)]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows"]
    return {(row["workload"], row["allocator"]): row["round_ns"] for row in rows}


def google(arguments, workload, allocator, core):
    command = [f"{arguments.build}/bench/tenon_allocator_bench", *arguments.specs, "--benchmark_format=json",
               f"--benchmark_min_time={arguments.seconds}", f"--benchmark_filter=^{allocator}/{workload}$"]
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    return json.loads(done.stdout)["benchmarks"][0]["cpu_time"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", default=["caching", "expandable"], metavar="SPEC")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.05, help="of Google Benchmark for a figure")
    arguments = parser.parse_intermixed_args()
    cores = sorted(os.sched_getaffinity(0))
    cells = [(workload, allocator) for workload in WORKLOADS for allocator in ("harness", *arguments.specs)]
    by_verb, by_google = {cell: [] for cell in cells}, {cell: [] for cell in cells}
    start = time.monotonic()
    for turn in range(arguments.turns):
        for cell, rounds in verb(arguments, turn).items():
            by_verb[cell] += rounds
        for cell in cells:
            by_google[cell].append(google(arguments, *cell, cores[turn % len(cores)]))
        if sys.stderr.isatty():
            print(f"\rturn {turn + 1} of {arguments.turns} ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"ns per pair, median and 95 % interval: {2 * arguments.turns} rounds of the verb, {arguments.turns} processes of "
          f"Google Benchmark; load {os.getloadavg()[0]:.1f}, {time.monotonic() - start:.0f} s\n")
    print("| workload | allocator | tenon bench | Google Benchmark | ratio | |")
    print("|---|---|---:|---:|---:|---|")
    agreeing = 0
    for cell in cells:
        mine, other = by_verb[cell], by_google[cell]
        (low, high), (its_low, its_high) = interval(mine), interval(other)
        is_agreed = low <= its_high and its_low <= high
        agreeing += is_agreed
        first, second = statistics.median(mine), statistics.median(other)
        print(f"| {cell[0]} | {cell[1]} | {first:.1f} ({low:.1f} to {high:.1f}) | {second:.1f} ({its_low:.1f} to {its_high:.1f}) "
              f"| {first / second:.3f} | {'agree' if is_agreed else 'differ'} |")
    print(f"\n{agreeing} of {len(cells)} agree.")
    return 0 if agreeing == len(cells) else 1


if __name__ == "__main__":
    sys.exit(main())
