#!/usr/bin/env python3
"""How much of the communication of several ranks backward hides: `tenon run` under mpirun with buckets on their way beside
backward, and sent at its end, in turn.

    bench/train/overlap.py build/release/bin/tenon [--rounds N] [--ranks N] [--shard parameters]

The share is of the seconds that buckets were on their way, those that backward did not wait for them at its end; both are
of rank 0. Needs the plugin mpi; writes a table for bench/results/overlap.md."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

# name, settings
MODELS = [
    ("mlp, hidden 1024", ["model.name=mlp", "model.hidden=1024", "model.layers=4", "train.batch_size=256"]),
    ("resnet18", ["model.name=resnet18", "train.batch_size=16"]),
    ("gpt, 4 blocks of 256", ["model.name=gpt", "data.name=text", "model.hidden=256", "model.layers=4", "model.context=64",
                              "train.batch_size=16"]),
]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl_vader_single_copy_mechanism", "none"]
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(tenon, ranks, settings, overlap, steps):
    with tempfile.TemporaryDirectory() as folder:
        experiment = os.path.join(folder, "exp.toml")
        with open(experiment, "w", encoding="utf-8") as file:
            file.write('[distributed]\nname = "mpi"\n[report]\nhtml = false\nestimate = false\n[data]\ntest_limit = 16\n'
                       f"[train]\nthreads = 1\nepochs = 100\ntest_batch_size = 16\nmax_steps = {steps}\n")
        words = [tenon, "run", experiment, f"distributed.overlap={overlap}", "--quiet", "--out", os.path.join(folder, "out")]
        words += [f'{key}="{value}"' if not value.replace(".", "").isdigit() else f"{key}={value}"
                  for key, value in (setting.split("=") for setting in settings)]
        subprocess.run(MPIRUN + ["-n", str(ranks)] + words, check=True, env={**os.environ, **ROOT},
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        with open(os.path.join(folder, "out", "result.json"), encoding="utf-8") as file:
            result = json.load(file)["result"]
    figures = result["figures"]
    return {"step": result["step_ms"]["p50"],
            "sent": figures["sent_gradient_bytes"] / steps / 2**20,
            "busy": 1000 * figures["communication_seconds"] / steps,
            "waited": 1000 * figures["communication_waited_seconds"] / steps,
            "hidden": figures["communication_hidden"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--shard", default="none", help="what is divided over the ranks: distributed.shard")
    options = parser.parse_args()
    print("| model | MiB a step | buckets sent | step ms | on their way, ms | waited, ms | hidden |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for name, settings in MODELS:
        settings = settings + [f"distributed.shard={options.shard}"]
        rounds = {"true": [], "false": []}
        for _ in range(options.rounds):
            for overlap, found in rounds.items():
                found.append(run(options.tenon, options.ranks, settings, overlap, options.steps))
        for overlap, found in rounds.items():
            median = {key: statistics.median(one[key] for one in found) for key in found[0]}
            print(f"| {name} | {median['sent']:.1f} | {'beside backward' if overlap == 'true' else 'at its end'} | "
                  f"{median['step']:.1f} | {median['busy']:.1f} | {median['waited']:.1f} | {100 * median['hidden']:.0f} % |",
                  flush=True)


if __name__ == "__main__":
    main()
