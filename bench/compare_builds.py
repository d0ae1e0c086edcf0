#!/usr/bin/env python3
"""Speed of two builds of Tenon: operators, allocators, replay and training steps of one beside those of the other.

  bench/compare_builds.py BEFORE AFTER [--rounds 9] [--only tensor,allocators,replay,training] [--out FILE]

BEFORE and AFTER are build folders of two checkouts (build/release of each) with the targets tenon_program,
tenon_all_plugins, tenon_tensor_overhead, tenon_allocator_bench and tenon_replay_bench. The two take turns, and who begins
changes from round to round. A row has the median of each, and the ratio of the medians and of the fastest rounds: where
others use the machine, the latter is the steadier figure. The table is Markdown; the exit code is 1 where the ratio of the
fastest rounds is above --limit (1.03).
"""
import argparse
import collections
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

BENCHMARKS = {
    "tensor": ("bench/tensor/tenon_tensor_overhead", ".*"),
    "allocators": ("bench/tenon_allocator_bench", "^(caching|expandable)/(hot|random|cached/1000$)"),
    "replay": ("bench/tenon_replay_bench", "^(read|end_to_end|policy)/"),
}
COURSES = {
    # name: (batch, steps, settings of `tenon run`)
    "mlp": (128, 200, ["model.name=mlp"]),
    "lenet": (128, 40, ["model.name=lenet"]),
    "resnet18": (32, 3, ["model.name=resnet18", "model.image_size=64"]),
    "gpt": (16, 3, ["model.name=gpt", "data.name=text", "model.hidden=384", "model.layers=6", "model.heads=6",
                    "model.context=128"]),
}


def run(build, command):
    """What a program of a build prints. It finds its own library though the folder has moved since it was linked."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib")}
    done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with status {done.returncode}:\n{done.stderr}")
    return done.stdout


def benchmarks(build, part, seconds):
    """Nanoseconds of each benchmark of one program, run once, pinned to one core."""
    program, names = BENCHMARKS[part]
    command = ["taskset", "-c", "1", build / program, f"--benchmark_filter={names}",
               f"--benchmark_min_time={seconds}", "--benchmark_format=json"]
    output = run(build, command)
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    for row in json.loads(output)["benchmarks"]:
        clock = "real_time" if "manual_time" in row["name"] else "cpu_time"
        yield f"{part}: {row['name'].split('/iterations')[0].removesuffix('/manual_time')}", row[clock] * units[row["time_unit"]]


def training(build):
    """Nanoseconds of the median step of each model."""
    for name, (batch, steps, words) in COURSES.items():
        with tempfile.TemporaryDirectory() as folder:
            toml = pathlib.Path(folder) / "experiment.toml"
            toml.write_text("")
            out = pathlib.Path(folder) / "out"
            run(build, [build / "bin/tenon", "run", toml, *words, f"train.batch_size={batch}", f"train.max_steps={steps}",
                        "train.epochs=1000", "data.test_limit=1", "train.test_batch_size=1", "train.threads=2",
                        "report.html=false", "report.estimate=false", "data.limit=6000", "--out", out, "--quiet"])
            result = json.loads((out / "result.json").read_text())
            yield f"training: {name}, a step", result["result"]["step_ms"]["p50"] * 1e6


def measured(build, part, seconds):
    return training(build) if part == "training" else benchmarks(build, part, seconds)


def text_of(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.05, help="least time of one benchmark in one round")
    parser.add_argument("--only", default="tensor,allocators,replay,training")
    parser.add_argument("--limit", type=float, default=1.03)
    parser.add_argument("--out", type=pathlib.Path)
    asked = parser.parse_args()
    parts = asked.only.split(",")
    unknown = set(parts) - {*BENCHMARKS, "training"}
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}: there are {', '.join([*BENCHMARKS, 'training'])}")
    for build in (asked.before, asked.after):
        if not (build / "bin/tenon").exists():
            parser.error(f"{build} has no bin/tenon: name the build folder of a checkout, as build/release")

    sides = {"before": asked.before.resolve(), "after": asked.after.resolve()}
    times = collections.defaultdict(lambda: {"before": [], "after": []})
    for part in parts:
        for turn in range(asked.rounds):
            for side in sorted(sides, reverse=turn % 2 == 0):
                for name, nanoseconds in measured(sides[side], part, asked.seconds):
                    times[name][side].append(nanoseconds)

    lines = [f"| what | before | after | ratio | of the fastest of {asked.rounds} |", "|---|---:|---:|---:|---:|"]
    slower, logs = [], []
    for name, row in times.items():
        if not row["before"] or not row["after"]:
            continue  # one of the two builds does not know this benchmark
        before, after = (statistics.median(row[side]) for side in ("before", "after"))
        fastest = min(row["after"]) / min(row["before"])
        logs.append(math.log(fastest))
        if fastest > asked.limit:
            slower.append(f"{name} ({fastest:.3f})")
        lines.append(f"| {name} | {text_of(before)} | {text_of(after)} | {after / before:.2f} | {fastest:.2f} |")
    lines.append(f"| geometric mean | | | | {math.exp(statistics.fmean(logs)):.3f} |")
    lines.append("")
    lines.append(f"Above {asked.limit}: {', '.join(slower) if slower else 'none'}. {platform.machine()}, "
                 f"{len(parts)} parts, {asked.rounds} rounds.")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if asked.out:
        asked.out.write_text(text)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
