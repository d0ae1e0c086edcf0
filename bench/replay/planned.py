#!/usr/bin/env python3
"""The allocator `planned` in the run after its recording: writes a table like bench/results/planned.md to standard output.

usage: bench/replay/planned.py build/release/bin/tenon [--budget TIME] TRACE...

For each history `tenon plan` makes a plan, and a replay is served from it. A history passes where the most that is
reserved is at most 1.02 x the most that is requested, and 4 MiB. A file with several devices counts with its first.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 1 << 20


def rows_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["rows"]


def main():
    tenon, *words = sys.argv[1:] or [None]
    budget = "30s"
    if words[:1] == ["--budget"]:
        budget, words = words[1], words[2:]
    if not tenon or not words:
        sys.exit(__doc__)
    ratios, failed = [], 0
    print("| history | blocks | peak requested, bytes | plan above the bound | proof | seconds | peak reserved / requested | passes |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder) / "x.plan"
        for trace in words:
            common = ["--format", "json", "--quiet"]
            found = rows_of([tenon, "plan", trace, "-o", plan, "--budget", budget, *common])[0]
            row = rows_of([tenon, "replay", trace, "--repeat", "1", "-a", f"planned:plan={plan}", *common])[0]
            requested, reserved = row["peak_requested_bytes"], row["peak_reserved_bytes"]
            passes = reserved <= 1.02 * requested + 4 * MIB
            failed += not passes
            ratios.append(reserved / requested)
            print(f"| {os.path.basename(trace)} | {found['blocks']} | {requested} | {100 * found['excess']:.3f} % | "
                  f"{found['proof']} | {found['seconds']:.2f} | {reserved / requested:.4f} | {'yes' if passes else 'NO'} |",
                  flush=True)
    print(f"\n{len(ratios)} histories, {failed} do not pass.")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
