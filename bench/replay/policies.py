#!/usr/bin/env python3
"""Every allocator on every history: the tables of bench/results/policies.md, and the first one of README.md.

usage: bench/replay/policies.py build/release/bin/tenon [--capacity SIZE] [-a SPEC]... [--write] TRACE...

Replays of the histories on a device of that capacity (80GiB). Histories whose peak is below 16 MiB, less than one
segment of some allocators, are left out. `ideal` reserves just what lives. The tables go to standard output, with
--write into these pages, between the lines <!-- policies.py: NAME --> and <!-- end -->.

Peak reserved over peak requested, geometric mean and worst; how many reserve at most 1.05 x requested + 8 MiB; rounding
and free memory between blocks as shares of what is reserved at its peak, means; calls to the device; retries after it
refused; histories that do not fit. All exact: speed is measured by `tenon bench`.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

MIB = 1 << 20
SHIPPED = ["direct", "caching", "expandable", "mortise", "tlsf", "arena", "bfc", "buddy", "rmm_pool:initial_pool_size=512", "rmm_arena",
           "slab_by_lcm", "stitching", "driver_async", "cub_bins:max_cached=1TiB"]
OF_README = ["direct", "mortise", "tlsf", "expandable", "caching"]
CALLS = ["device_allocations", "device_frees", "device_maps", "device_unmaps"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def replayed(tenon, capacity, specs, trace):
    command = [tenon, "replay", trace, "--capacity", capacity, "--repeat", "1", "--format", "json", "--quiet"]
    for spec in specs:
        command += ["-a", spec]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{trace}: code {done.returncode}\n{done.stderr}")
    return {row["spec"]: row for row in json.loads(done.stdout)["rows"]}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / max(1, len(values)))


class Figures:
    """Of one allocator over all histories."""

    def __init__(self):
        self.rows = []
        self.failed = 0

    def add(self, row, requested):
        if row is None or row["ooms"]:
            self.failed += 1
            return "OOM"
        self.rows.append({**row, "ratio": row["peak_reserved_bytes"] / requested})
        return f"{self.rows[-1]['ratio']:.3f}"

    def mean(self):
        return geometric_mean([row["ratio"] for row in self.rows])

    def cells(self, histories):
        within = sum(row["peak_reserved_bytes"] <= 1.05 * row["peak_requested_bytes"] + 8 * MIB for row in self.rows)
        share = {kind: sum(row[kind] for row in self.rows) / max(1, len(self.rows))
                 for kind in ("internal_fragmentation", "external_fragmentation")}
        return [f"{self.mean():.3f}", f"{max((row['ratio'] for row in self.rows), default=0):.3f}", f"{within} of {histories}",
                f"{100 * share['internal_fragmentation']:.1f} %", f"{100 * share['external_fragmentation']:.1f} %",
                str(sum(row[kind] for row in self.rows for kind in CALLS)), str(sum(row["retries"] for row in self.rows)),
                str(self.failed or "")]


TITLES = ["geometric mean", "worst", "within 1.05 × + 8 MiB", "internal", "external", "calls to the device", "retries",
          "out of memory"]


def table(titles, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [titles, *rows]).replace(
        "\n", "\n" + "|---" * len(titles) + "|\n", 1)


def summary(figures, histories, columns=None):
    """Best first, below the ideal row. `columns`: which of the titles; all if None."""
    columns = range(len(TITLES)) if columns is None else columns
    ideal = ["1.000", "1.000", f"{histories} of {histories}"] + [""] * (len(TITLES) - 3)
    rows = [["`ideal`"] + [ideal[i] for i in columns]]
    for spec in sorted(figures, key=lambda spec: figures[spec].mean()):
        cells = figures[spec].cells(histories)
        rows.append([f"`{spec}`"] + [cells[i] for i in columns])
    return table(["allocator"] + [TITLES[i] for i in columns], rows)


def put(page, name, text):
    """Between the lines of that name."""
    path = ROOT / page
    old = path.read_text(encoding="utf-8")
    begin, end = f"<!-- policies.py: {name} -->\n", "<!-- end -->"
    before, found, rest = old.partition(begin)
    if not found or end not in rest:
        sys.exit(f"{page} has no place for the table '{name}'")
    path.write_text(before + begin + text + "\n" + rest[rest.index(end):], encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("tenon")
    parser.add_argument("--capacity", default="80GiB")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("-a", "--allocator", action="append")
    parser.add_argument("traces", nargs="+")
    asked = parser.parse_args()
    if asked.write and asked.allocator:
        sys.exit("--write is about all allocators that are shipped")
    specs = asked.allocator or SHIPPED
    figures = {spec: Figures() for spec in specs}
    lines = []
    for trace in asked.traces:
        rows = replayed(asked.tenon, asked.capacity, specs, trace)
        requested = max(row["peak_requested_bytes"] for row in rows.values())
        if requested < 16 * MIB:
            continue
        cells = [figures[spec].add(rows.get(spec), requested) for spec in specs]
        lines.append([os.path.basename(trace).split(".")[0], str(requested // MIB), *cells])
    by_history = table(["history", "peak requested, MiB"] + [f"`{spec}`" for spec in specs], lines)
    if not asked.write:
        print(summary(figures, len(lines)) + "\n\n" + by_history)
        return
    put("bench/results/policies.md", "summary", summary(figures, len(lines)))
    put("bench/results/policies.md", "by history", by_history)
    put("README.md", "summary", summary({spec: figures[spec] for spec in OF_README}, len(lines), [0, 1, 2, 5]))


if __name__ == "__main__":
    main()
