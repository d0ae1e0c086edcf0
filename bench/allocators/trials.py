#!/usr/bin/env python3
"""What `tenon bench` says of two builds that are the same, and of one that is 5 % slower.

    bench/allocators/trials.py [--build build/release] [--tries 20] [--slower 0.05] [--only same|slower|files]

A against A: two copies of caching.so, all workloads; a try is good when every verdict of it (each workload, and all of them)
is "no evidence". Slower: two copies of caching with a delay before each request (delayed_caching.cpp), of 0 steps and of as
many as make a pair 5 % slower, which is found out first (to half a percent, as far as the machine allows). A try is good when it says "slower", and takes the next of the
four workloads. Files: A against A again, by `tenon compare` of six benches of each copy, made in turn, under the next of the
four workloads; a try is good when it says "no evidence", and when the first file of each side alone gets no verdict. Exit
code 1 where fewer than 19 of 20 tries of any kind are good.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter

SLOWER_UNDER = ["hot/4KiB", "lifo/1000", "random/1000", "random/10000"]
GUESSED_STEPS = 16
CORRECTIONS = 8
CLOSE_ENOUGH = 0.004
FILES_A_SIDE = 6
ROUNDS_OF_A_FILE = 20  # its median is all that counts


def bench(tenon, specs, workloads, seed, rounds=None):
    command = [tenon, "bench", *specs, "--json", "--seed", str(seed), *(["--rounds", str(rounds)] if rounds else [])]
    command += [word for name in workloads for word in ("-w", name)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def compared(result):
    """Of the second allocator: (workload, ratio, verdict)."""
    second = result["allocators"][1]["name"]
    rows = [(row["workload"], row["ratio"], row["verdict"]) for row in result["rows"] if row["allocator"] == second]
    return rows + [("all", row["ratio"], row["verdict"]) for row in result["all"]]


def copies(library, folder):
    paths = [os.path.join(folder, f"{name}_{os.path.basename(library)}") for name in ("first", "second")]
    for path in paths:
        shutil.copy(library, path)
    return paths


def same(arguments, folder):
    specs = copies(f"{arguments.build}/lib/tenon/plugins/caching.so", folder)
    good, verdicts, named = 0, Counter(), []
    for seed in range(arguments.tries):
        rows = compared(bench(arguments.tenon, specs, [], seed))
        verdicts.update(verdict for _, _, verdict in rows)
        wrong = [f"seed {seed}: {name} {verdict} ({ratio:.3f})" for name, ratio, verdict in rows if verdict != "no evidence"]
        named += wrong
        good += not wrong
        tell(f"A against A, try {seed + 1}: {good} good")
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    print(f"A against A: {good} of {arguments.tries} tries without a verdict; of all verdicts: {told}.")
    for line in named:
        print(f"  {line}")
    return good


def by_how_much(arguments, specs, workload, steps, seed):
    return compared(bench(arguments.tenon, [specs[0], f"{specs[1]}:delay={steps}"], [workload], seed))[0][1] - 1


def files(arguments, folder):
    """`tenon compare` of benches that were taken one after the other."""
    specs = copies(f"{arguments.build}/lib/tenon/plugins/caching.so", folder)
    good, alone, ratios = 0, 0, []
    for seed in range(arguments.tries):
        workload = SLOWER_UNDER[seed % len(SLOWER_UNDER)]
        sides = {"a": [], "b": []}
        for turn in range(FILES_A_SIDE):
            for side, spec in sorted(zip(sides, specs), reverse=turn % 2 == 1):
                sides[side].append(os.path.join(folder, f"{side}{turn}.json"))
                with open(sides[side][-1], "w") as file:
                    json.dump(bench(arguments.tenon, [spec], [workload], seed * FILES_A_SIDE + turn, ROUNDS_OF_A_FILE), file)
        said = verdict_of(arguments.tenon, [*sides["a"], "vs", *sides["b"]])
        alone += verdict_of(arguments.tenon, [sides["a"][0], sides["b"][0]]).startswith("no verdict: one file each")
        ratios += [first / other for first, other in zip(*([ns_in(path) for path in sides[side]] for side in sides))]
        good += said.startswith("no evidence")
        if not said.startswith("no evidence"):
            print(f"  seed {seed}, {workload}: {said}", flush=True)
        tell(f"files, try {seed + 1}: {good} good, {alone} alone")
    off = sum(not 1 / 1.02 < ratio < 1.02 for ratio in ratios)
    print(f"Files: {good} of {arguments.tries} tries without a verdict, six files a side; {alone} of {arguments.tries} of one file a side. "
          f"Of {len(ratios)} pairs of files of the same build {off} lay more than 2 % apart, at most {100 * (max(max(ratios), 1 / min(ratios)) - 1):.0f} %.")
    return min(good, alone)


def verdict_of(tenon, results):
    done = subprocess.run([tenon, "compare", *results, "--format", "json", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return next(row["verdicts"][1] for row in json.loads(done.stdout)["rows"] if row["figure"] == "ns_per_pair")


def ns_in(path):
    with open(path) as file:
        return json.load(file)["rows"][0]["ns_per_pair"]


def steps_for(arguments, specs, workload):
    """As many as make the build slower by what is asked for, under seeds that no try has. A step that hides behind a cache miss
    costs nothing, so the time is no multiple of the steps: the line through the nearest points on both sides says what to try next."""
    found = {0: 0.0}
    steps = GUESSED_STEPS
    for seed in range(1001, 1001 + CORRECTIONS):
        found[steps] = by_how_much(arguments, specs, workload, steps, seed)
        if abs(found[steps] - arguments.slower) < CLOSE_ENOUGH:
            break
        below = max((at for at, share in found.items() if share < arguments.slower), default=0)
        above = min((at for at, share in found.items() if share >= arguments.slower and at > below), default=None)
        if above is None:
            steps = round(min(4.0, arguments.slower / max(0.01, found[steps])) * steps) + 1
        else:
            part = (arguments.slower - found[below]) / (found[above] - found[below])
            steps = min(max(round(below + part * (above - below)), below + 1), above - 1)
        if steps in found:
            break
    best = min((at for at in found if at > 0), key=lambda at: abs(found[at] - arguments.slower))
    return best, by_how_much(arguments, specs, workload, best, 1000)


def slower(arguments, folder):
    specs = copies(f"{arguments.build}/bench/delayed_caching.so", folder)
    found = {workload: [] for workload in SLOWER_UNDER}
    steps = {workload: steps_for(arguments, specs, workload) for workload in SLOWER_UNDER}
    for seed in range(arguments.tries):
        workload = SLOWER_UNDER[seed % len(SLOWER_UNDER)]
        found[workload] += compared(bench(arguments.tenon, [specs[0], f"{specs[1]}:delay={steps[workload][0]}"], [workload], seed))
        tell(f"slower, try {seed + 1}: {found[workload][-1][2]}")
    good = sum(verdict == "slower" for rows in found.values() for _, _, verdict in rows)
    print(f"{100 * arguments.slower:g} % slower: {good} of {arguments.tries} tries say so.\n")
    print("| workload | steps | slower by | in the tries, median | named slower |")
    print("|---|---:|---:|---:|---:|")
    for workload, rows in found.items():
        if not rows:
            continue
        count, share = steps[workload]
        print(f"| {workload} | {count} | {100 * share:+.1f} % | {100 * (statistics.median(ratio for _, ratio, _ in rows) - 1):+.1f} % "
              f"| {sum(verdict == 'slower' for _, _, verdict in rows)} of {len(rows)} |")
    return good


def tell(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text} ", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)  # what was tried is there though it be ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--slower", type=float, default=0.05, help="by how much the slower build is slower")
    parser.add_argument("--only", choices=["same", "slower", "files"])
    arguments = parser.parse_args()
    arguments.tenon = f"{arguments.build}/bin/tenon"
    start, good = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        for kind, trial in (("same", same), ("slower", slower), ("files", files)):
            if arguments.only in (None, kind):
                good.append(trial(arguments, folder))
    tell("")
    print(f"\nLoad {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the end, {time.monotonic() - start:.0f} s.")
    return 0 if all(20 * count >= 19 * arguments.tries for count in good) else 1


if __name__ == "__main__":
    sys.exit(main())
