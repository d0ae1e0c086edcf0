#!/usr/bin/env python3
"""The allocator cub_bins beside CUB itself, history by history: the table of bench/results/baselines.md, to standard output.

usage: bench/replay/baselines.py build/release/bin/tenon CUB_ORIGINAL TRACE.trace[.gz]...

CUB_ORIGINAL is built from bench/replay/cub_original.cpp, which says how. Exit code 1 where the two differ: in their calls to
the device, or in space by more than what a source adds that gives memory in multiples of 512 bytes.
"""
import gzip
import json
import math
import os
import subprocess
import sys

# As they are shipped: (growth, least bin, largest bin, most that is cached).
SETTINGS = {"defaults": (8, 3, 7, 6291455), "all cached": (2, 9, 36, 1 << 62)}


def ours(tenon, trace):
    command = [tenon, "replay", trace, "--repeat", "1", "--format", "json", "--quiet"]
    for growth, least, largest, cached in SETTINGS.values():
        command += ["-a", f"cub_bins:bin_growth={growth},min_bin={least},max_bin={largest},max_cached={cached}"]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows"]
    return [(row["peak_requested_bytes"], row["peak_reserved_bytes"], row["device_allocations"] + row["device_frees"])
            for row in rows if row["allocator"] == "cub_bins"]


def theirs(program, trace):
    with (gzip.open if trace.endswith(".gz") else open)(trace, "rb") as file:
        text = file.read()
    for setting in SETTINGS.values():
        done = subprocess.run([program, *map(str, setting)], input=text, capture_output=True, check=True)
        yield tuple(map(int, done.stdout.split()))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    tenon, program, *traces = sys.argv[1:]
    print("| history | " + " | ".join(f"{name}: CUB | `cub_bins` | calls: CUB | `cub_bins`" for name in SETTINGS) + " |")
    print("|---|" + "---:|" * 4 * len(SETTINGS))
    differ, ratios = 0, [[] for _ in SETTINGS]
    for trace in traces:
        cells = []
        for i, (mine, other) in enumerate(zip(ours(tenon, trace), theirs(program, trace))):
            differ += mine[2] != other[2] or abs(mine[1] - other[1]) > 1e-4 * other[1]
            ratios[i].append(other[1] / other[0])
            cells += [f"{other[1] / other[0]:.4f}", f"{mine[1] / mine[0]:.4f}", str(other[2]), str(mine[2])]
        print(f"| {os.path.basename(trace).split('.')[0]} | " + " | ".join(cells) + " |", flush=True)
    means = [math.exp(sum(map(math.log, column)) / len(column)) for column in ratios]
    print(f"\n{len(traces)} histories, {differ} of {len(traces) * len(SETTINGS)} rows differ; CUB's geometric means "
          + ", ".join(f"{mean:.3f} ({name}), worst {max(column):.2f}" for mean, name, column in zip(means, SETTINGS, ratios)) + ".")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
