#!/usr/bin/env python3
"""Loss curves in mixed precision beside float32, and what another seed changes: the noise that they are held against.

  python bench/train/mixed_curves.py build/release/bin/tenon [--steps 300]

A row is a run: the mean distance of its losses, step by step, from those of float32 with seed 47, the mean of its last tenth
of losses, and the accuracy of its test. Data sets lie where `tenon run` looks for them.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

MODELS = {
    "lenet": ["model.name=lenet", "train.batch_size=64"],
    "gpt": ["model.name=gpt", "data.name=text", "model.hidden=128", "model.layers=2", "model.heads=4", "model.context=64",
            "train.batch_size=16"],
}
RUNS = [("float32", 47), ("float32", 48), ("float32", 49), ("bfloat16-mixed", 47), ("float16-mixed", 47)]


def run(program, settings):
    with tempfile.TemporaryDirectory() as folder:
        toml = pathlib.Path(folder) / "experiment.toml"
        toml.write_text("")
        out = pathlib.Path(folder) / "out"
        subprocess.run([program, "run", toml, *settings, "--out", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        return json.load(open(out / "result.json"))["result"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    print("| model | precision | seed | mean distance | last tenth | accuracy |\n|---|---|---:|---:|---:|---:|")
    for name, words in MODELS.items():
        plain = None
        for precision, seed in RUNS:
            result = run(arguments.program, [
                *words, f"train.precision={precision}", f"train.seed={seed}", f"train.max_steps={arguments.steps}",
                "train.epochs=1000", "train.threads=2", "data.test_limit=1000", "train.test_batch_size=100",
                "report.html=false", "report.estimate=false"])
            losses = result["losses"]
            plain = plain or losses
            distance = sum(abs(a - b) for a, b in zip(losses, plain)) / len(losses)
            tail = losses[-max(1, len(losses) // 10):]
            print(f"| {name} | {precision} | {seed} | {distance:.4f} | {sum(tail) / len(tail):.4f} | "
                  f"{100 * result['test_accuracy']:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
