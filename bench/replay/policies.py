#!/usr/bin/env python3
"""Every allocator on every history: writes a page like bench/results/policies.md to standard output.

usage: bench/replay/policies.py build/release/bin/tenon [--capacity SIZE] [-a SPEC]... TRACE...

Peak reserved over peak requested, and calls that take memory from the device or map it, in replays of the histories on a
device of that capacity (80GiB). Histories whose peak is below 16 MiB, less than one segment of some allocators, are left
out. `ideal` reserves just what lives.
"""
import argparse
import json
import math
import os
import subprocess
import sys

MIB = 1 << 20
SHIPPED = ["direct", "caching", "expandable", "mortise", "tlsf", "arena", "bfc", "buddy", "rmm_pool:initial_pool_size=512", "rmm_arena",
           "slab_by_lcm", "stitching", "driver_async", "cub_bins:max_cached=1TiB"]


def replayed(tenon, capacity, specs, trace):
    command = [tenon, "replay", trace, "--capacity", capacity, "--repeat", "1", "--format", "json", "--quiet"]
    for spec in specs:
        command += ["-a", spec]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{trace}: code {done.returncode}\n{done.stderr}")
    return {row["spec"]: row for row in json.loads(done.stdout)["rows"]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("--capacity", default="80GiB")
    parser.add_argument("-a", "--allocator", action="append")
    parser.add_argument("traces", nargs="+")
    asked = parser.parse_args()
    specs = asked.allocator or SHIPPED
    ratios = {spec: [] for spec in specs}
    calls = dict.fromkeys(specs, 0)
    within = dict.fromkeys(specs, 0)
    failed = dict.fromkeys(specs, 0)
    lines = []
    for trace in asked.traces:
        rows = replayed(asked.tenon, asked.capacity, specs, trace)
        requested = max(row["peak_requested_bytes"] for row in rows.values())
        if requested < 16 * MIB:
            continue
        cells = []
        for spec in specs:
            row = rows.get(spec)
            if row is None or row["ooms"]:
                failed[spec] += 1
                cells.append("OOM")
                continue
            reserved = row["peak_reserved_bytes"]
            ratios[spec].append(reserved / requested)
            calls[spec] += row["device_allocations"] + row["device_maps"]
            within[spec] += reserved <= 1.05 * requested + 8 * MIB
            cells.append(f"{reserved / requested:.3f}")
        lines.append(f"| {os.path.basename(trace).split('.')[0]} | {requested // MIB} | " + " | ".join(cells) + " |")
    print("| allocator | geometric mean | worst | within 1.05 × + 8 MiB | out of memory | calls to the device |")
    print("|---|---|---|---|---|---|")
    print(f"| `ideal` | 1.000 | 1.000 | {len(lines)} of {len(lines)} | | |")
    for spec in sorted(specs, key=lambda spec: sum(map(math.log, ratios[spec])) / max(1, len(ratios[spec]))):
        mean = math.exp(sum(map(math.log, ratios[spec])) / max(1, len(ratios[spec])))
        print(f"| `{spec}` | {mean:.3f} | {max(ratios[spec], default=0):.3f} | {within[spec]} of {len(lines)} | "
              f"{failed[spec] or ''} | {calls[spec]} |")
    print("\n| history | peak requested, MiB | " + " | ".join(f"`{spec}`" for spec in specs) + " |")
    print("|---" * (2 + len(specs)) + "|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
