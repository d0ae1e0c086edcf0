#!/usr/bin/env python3
"""What an estimate costs: seconds and memory of the host of `tenon run … --dry-run`, which computes on addresses alone.

  bench/train/estimates.py build/release/bin/tenon [--rounds 5]

The models take turns. Seconds are from the start of the program to its end, and what its processes had of the processors,
the steadier figure where others use the machine; memory is the most that the program, or the process that it makes the
estimate in, had resident. The table is Markdown: medians, and the least and the most of the
rounds. Exit code 1 where a median is above its limit.
"""
import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

GPT2_XL = ["model.name=gpt", "model.hidden=1600", "model.layers=48", "model.heads=25", "model.context=1024",
           "model.vocabulary=50257"]
LLAMA_70B = ["model.name=llama", "model.preset=70B"]
MODELS = {
    # name: (settings of `tenon run`, most seconds, most megabytes)
    "GPT-2 XL, batch 1": (GPT2_XL, 1, 200),
    "GPT-2 XL, batch 8": ([*GPT2_XL, "train.batch_size=8"], 1, 200),
    "llama 70B, context 128": ([*LLAMA_70B, "model.context=128"], 5, None),
    "llama 70B, context 8192": ([*LLAMA_70B, "model.context=8192"], 5, None),
}


def estimate(program, settings, folder):
    """What one dry run printed of parameters and peaks, its seconds, those of processors, and its resident megabytes."""
    (folder / "text").write_text("".join(chr(ord("a") + i * i // 3 % 7) for i in range(100_000)))
    (folder / "experiment.toml").write_text(
        '[data]\nname = "text"\npath = "text"\n[train]\nbatch_size = 1\ntest_batch_size = 1\n')
    command = [program, "run", "experiment.toml", *settings, "--dry-run"]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with status {status}")
    said = {}
    for line in output.splitlines():
        for key in ("parameters", "estimated peak requested"):
            if line.startswith(f"# {key}"):
                said[key] = line.removeprefix(f"# {key}").strip()
    if len(said) != 2:
        raise SystemExit(f"{' '.join(map(str, command))} has no estimate:\n{output}")
    return said, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    program = asked.program.resolve()
    measured = {name: [] for name in MODELS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(asked.rounds):
            for name, (settings, _, _) in MODELS.items():
                measured[name].append(estimate(program, settings, pathlib.Path(folder)))

    print("| model | parameters | estimated peak requested | seconds | limit | of a processor | resident MB | limit |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    above = []
    for name, (_, most_seconds, most_mb) in MODELS.items():
        said, seconds, busy, resident = measured[name][0][0], *([row[i] for row in measured[name]] for i in (1, 2, 3))
        if any(row[0] != said for row in measured[name]):
            above.append(f"{name}: not every round estimates the same")
        if statistics.median(seconds) > most_seconds:
            above.append(f"{name}: {statistics.median(seconds):.2f} s")
        if most_mb is not None and statistics.median(resident) > most_mb:
            above.append(f"{name}: {statistics.median(resident):.0f} MB")
        print(f"| {name} | {said['parameters']} | {said['estimated peak requested']} | {spread(seconds, 2)} | {most_seconds} "
              f"| {spread(busy, 2)} | {spread(resident, 0)} | {most_mb or '-'} |")
    load = os.getloadavg()[0]
    print(f"\nMedians of {asked.rounds} rounds (least to most). {platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the end.")
    for line in above:
        print(f"above its limit: {line}")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
