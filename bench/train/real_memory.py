#!/usr/bin/env python3
"""Training under allocators that map memory: the table of bench/results/real_memory.md.

  bench/train/real_memory.py build/release/bin/tenon [--steps 8] [-a SPEC]...

Two devices: the CPU, whose virtual memory is real (pages of a memfd, mapped at fixed addresses), and a simulated one that
computes on the host and takes 30 us for each call for memory. On each: whether all losses are equal to the last bit to those
under `caching`, the calls for memory that a step makes from the third on, and what they take of a step's time. Exit code 1
where losses differ or a step takes more than 1 % longer than under `caching`.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

MODELS = {
    "lenet": ["model.name=lenet", "data.name=fashion-mnist", "train.batch_size=64"],
    "resnet18": ["model.name=resnet18", "data.name=fashion-mnist", "train.batch_size=16"],
    "gpt": ["model.name=gpt", "model.hidden=128", "model.layers=4", "model.heads=4", "model.context=128", "data.name=text",
            "train.batch_size=16"],
}
CALL_US = 30
DEVICES = {
    "cpu, memfd": ["device.name=cpu"],
    f"simulated, {CALL_US} us a call": ["device.name=simulated:0", "device.simulated.capacity=16GiB",
                                        f"device.simulated.latency_us={CALL_US}"],
}
ALLOCATORS = ["caching", "expandable", "tlsf", "stitching", "mortise"]


def trained(program, settings, steps):
    """The result of a run whose first two steps do not count."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        (pathlib.Path(folder) / "experiment.toml").write_text(
            '[train]\noptimizer = "adamw"\nlr = 1e-3\nseed = 47\nthreads = 2\nwarmup_steps = 2\ntest_batch_size = 16\n'
            "[data]\ntest_limit = 16\n[report]\nhtml = false\n")
        done = subprocess.run([program, "run", "experiment.toml", f"train.max_steps={steps}", *settings, "--out", out, "--quiet"],
                              cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(settings)}: code {done.returncode}\n{done.stderr}")
        return json.loads((out / "result.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("-a", "--allocator", action="append")
    asked = parser.parse_args()
    program = asked.program.resolve()
    others = asked.allocator or ALLOCATORS[1:]
    failed = []
    print("| model | device | allocator | losses | reserved / requested | calls a step from the third on | of a step's time |")
    print("|---|---|---|---|---:|---:|---:|")
    for model, settings in MODELS.items():
        for device, of_device in DEVICES.items():
            caching = None
            for allocator in ["caching", *others]:
                result = trained(program, [*settings, *of_device, f"allocator.name={allocator}"], asked.steps)
                run, memory = result["result"], result["memory"]
                caching = caching or run
                calls = memory["device_calls_per_step"]
                share = calls * CALL_US / 1000 / caching["step_ms"]["p50"]
                equal = run["losses_fnv1a64"] == caching["losses_fnv1a64"]
                if not equal or share > 0.01:
                    failed.append(f"{model} on {device} under {allocator}")
                print(f"| {model} | {device} | `{allocator}` | {'equal' if equal else 'DIFFERENT'} | "
                      f"{memory['peak_reserved_bytes'] / memory['peak_requested_bytes']:.3f} | {calls:.2f} | {100 * share:.2f} % |",
                      flush=True)
    for line in failed:
        print(f"beyond the limits: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
