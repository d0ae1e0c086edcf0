#!/usr/bin/env python3
"""tenon tune against an exhaustive grid of PyTorch's settings: writes bench/results/tune.md.

usage: bench/replay/tune_grid.py build/bin/tenon TRACE...

The grid is run here, one `tenon replay --pytorch-conf` cell for each combination, without any of tune's search.
"""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

MIB = 1 << 20
SPLITS = ["", "32", "64", "128", "256", "512", "1024", "2048"]
ROUNDUPS = ["", "2", "4", "8", "16", "32", "64"]
SEGMENTS = ["", "12", "16", "32", "64", "128", "256"]
SLACKS = ["", "64", "256", "1024"]


def combinations():
    for expandable, split, roundup, segment, slack in itertools.product(["", "True"], SPLITS, ROUNDUPS, SEGMENTS, SLACKS):
        seg = int(segment or 20)
        if expandable and split or split and int(split) < seg or slack and (not split or int(slack) < seg):
            continue
        pairs = [("expandable_segments", expandable), ("max_split_size_mb", split), ("roundup_power2_divisions", roundup),
                 ("large_segment_size_mb", segment), ("max_non_split_rounding_mb", slack)]
        yield ",".join(f"{key}:{value}" for key, value in pairs if value)


def best_of_grid(tenon, trace):
    confs = list(combinations())
    best = None
    start = time.time()
    for first in range(0, len(confs), 200):
        command = [tenon, "replay", trace, "--format", "json", "--quiet"]
        for conf in confs[first:first + 200]:
            command += ["--pytorch-conf", conf]
        rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows"]
        for conf, row in zip(confs[first:], rows):
            if row["allocator"] != "ideal" and (best is None or row["peak_reserved_bytes"] < best[0]):
                best = (row["peak_reserved_bytes"], conf)
    return best, len(confs), time.time() - start


def main():
    tenon, traces = sys.argv[1], sys.argv[2:]
    lines = ["# `tenon tune` against an exhaustive grid", "",
             "Peak of reserved memory without a limit. The grid is run by `bench/replay/tune_grid.py` with plain `tenon replay`, sharing nothing with the",
             "search. `tune` recommends, of the settings within 1 % of the lowest peak, the one that is safe from the smallest capacity, then the simplest.", "",
             "| history | live at peak, MiB | PyTorch's defaults | best of grid | its setting | grid | tune | its setting | beyond the best | tune took |",
             "|---|---:|---:|---:|---|---:|---:|---|---:|---:|"]
    for trace in traces:
        (peak, conf), count, grid_seconds = best_of_grid(tenon, trace)
        start = time.time()
        result = json.loads(subprocess.run([tenon, "tune", trace, "--format", "json", "--quiet"], capture_output=True, text=True, check=True).stdout)
        seconds = time.time() - start
        base = next(row for row in result["rows"] if row["baseline"])
        chosen = result["recommendation"]
        lines.append(f"| {pathlib.Path(trace).name} | {result['peak_requested_bytes'] / MIB:.0f} | {base['peak_reserved_bytes'] / MIB:.0f} | {peak / MIB:.0f} | `{conf}` | {count} in "
                     f"{grid_seconds:.0f} s | {chosen['peak_reserved_bytes'] / MIB:.0f} | `{chosen['PYTORCH_ALLOC_CONF']}` | {100 * (chosen['peak_reserved_bytes'] / peak - 1):+.2f} % | {seconds:.1f} s |")
        print(lines[-1], file=sys.stderr)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    lines += ["", f"Measured on {os.cpu_count()} cores of {cpu}, shared with other work."]
    target = pathlib.Path(__file__).resolve().parent.parent / "results" / "tune.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines) + "\n")


main()
