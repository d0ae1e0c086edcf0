#!/usr/bin/env python3
"""What scopes cost while nobody listens: two builds of the same tree, one of which does not ask.

  cmake --preset release -B build/without-scopes -DCMAKE_CXX_FLAGS=-DTENON_WITHOUT_SCOPES
  cmake --build build/without-scopes --target tenon_tensor_overhead tenon_profiler_off_cost
  bench/profiler/off_cost.py build/without-scopes build/release [--rounds 21]

Instructions are counted by valgrind (callgrind) and the same in every run: what 10,000 more turns take, divided.
Times are those of tenon_tensor_overhead, the two builds in turn, on one core; the ratio is the median of the pairs
with its quartiles. How the linker lays the code moves them by some per cent either way: compare several builds.
"""
import argparse
import csv
import pathlib
import statistics
import subprocess
import tempfile

PROGRAMS = ["empty", "add", "add_recorded", "select", "chain"]
FEW, MANY = 2000, 12000


def instructions(build, program):
    counts = []
    for times in (FEW, MANY):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                 build / "bench/profiler/tenon_profiler_off_cost", program, str(times)],
                capture_output=True, text=True, check=True)
        counts.append(int(run.stderr.split("Collected :")[1].split()[0]))
    return (counts[1] - counts[0]) / (MANY - FEW)


def times(build):
    run = subprocess.run(
        ["taskset", "-c", "1", build / "bench/tensor/tenon_tensor_overhead", "--benchmark_format=csv", "--benchmark_min_time=0.05"],
        capture_output=True, text=True, check=True)
    rows = csv.DictReader(run.stdout[run.stdout.index("name,"):].splitlines())
    return {row["name"]: float(row["cpu_time"]) for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("without", type=pathlib.Path)
    parser.add_argument("with_scopes", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds is {options.rounds}: quartiles need 2 at least")
    print("| program | instructions without | with | ratio |\n|---|---:|---:|---:|")
    for program in PROGRAMS:
        without, with_scopes = instructions(options.without, program), instructions(options.with_scopes, program)
        print(f"| `{program}` | {without:.0f} | {with_scopes:.0f} | {with_scopes / without:.3f} |", flush=True)
    pairs = {}
    for turn in range(options.rounds):
        builds = [options.without, options.with_scopes]
        measured = {build: times(build) for build in (builds if turn % 2 == 0 else builds[::-1])}
        for name in measured[options.without]:
            pairs.setdefault(name, []).append((measured[options.without][name], measured[options.with_scopes][name]))
    print("\n| benchmark | without, fastest | with, fastest | median of pairs | quartiles |\n|---|---:|---:|---:|---:|")
    for name, both in pairs.items():
        ratios = sorted(after / before for before, after in both)
        low, _, high = statistics.quantiles(ratios, n=4)
        print(f"| `{name}` | {min(b for b, _ in both):.4g} | {min(a for _, a in both):.4g} "
              f"| {statistics.median(ratios):.3f} | {low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    main()
