#!/usr/bin/env python3
"""Step time and peak memory of training, Tenon against PyTorch eager: same model, batch, optimiser and threads.

  python bench/train/against_pytorch.py build/release/bin/tenon [--rounds 5] [--models mlp,lenet,resnet18,gpt] [--out FILE]

Each figure is the median over rounds in which the two take turns, each run in a process of its own; the time of a run is
the median of its steps without the first few. Memory is the peak of what tensors asked for: Tenon's own statistics,
PyTorch's profiler in a run that is not timed. The peak of the process's resident memory stands beside it, less that of a
process that only loads the framework. Exit code 1 when a ratio is above 1.
"""
import argparse
import gzip
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = 2
COURSES = {
    # name: (batch, steps, settings of `tenon run`)
    "mlp": (128, 200, ["model.name=mlp"]),
    "lenet": (128, 60, ["model.name=lenet"]),
    "resnet18": (32, 5, ["model.name=resnet18", "model.image_size=64"]),
    "gpt": (16, 5, ["model.name=gpt", "data.name=text", "model.hidden=384", "model.layers=6", "model.heads=6",
                    "model.context=128"]),
}


def child(command, **options):
    """Runs a command; its stdout, and the peak of its resident memory in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with status {status}")
    return output, usage.ru_maxrss * 1024


def run_tenon(program, name, steps=None):
    batch, usual, words = COURSES[name]
    with tempfile.TemporaryDirectory() as folder:
        toml = pathlib.Path(folder) / "experiment.toml"
        toml.write_text("")
        command = [program, "run", toml, *words, f"train.batch_size={batch}", f"train.max_steps={steps or usual}",
                   "train.epochs=1000", "data.test_limit=1", "train.test_batch_size=1", f"train.threads={THREADS}",
                   "report.html=false", "report.estimate=false", "data.limit=6000", "--out", pathlib.Path(folder) / "out", "--quiet"]
        _, resident = child(command)
        result = json.load(open(pathlib.Path(folder) / "out" / "result.json"))
    # Between steps there are parameters, two moments, and the data set, which is not part of the comparison.
    parameters = result["result"]["parameters"]
    data_set = result["timeline"][-1]["requested_bytes"] - 3 * 4 * parameters
    return {"step_ms": result["result"]["step_ms"]["p50"], "parameters": parameters, "resident_bytes": resident,
            "peak_bytes": result["memory"]["peak_requested_bytes"] - data_set}


def train_in_pytorch(name, profile):
    """In a process of its own: prints one line of JSON."""
    import torch
    from torch.nn import functional as F

    import common

    torch.set_num_threads(THREADS)
    torch.manual_seed(47)
    batch, steps, _ = COURSES[name]
    if name == "gpt":
        training, _, vocabulary = common.read_text("/usr/share/common-licenses")
        model = common.Gpt(vocabulary, 128, 384, 6, 6)
        windows = training[: len(training) // 128 * 128].view(-1, 128)

        def example():
            x = windows[torch.randint(len(windows) - 1, (batch,))]
            return x, x.roll(-1, 1)
    else:
        model = {"mlp": common.mlp, "lenet": common.lenet, "resnet18": common.ResNet18}[name]()
        side = 64 if name == "resnet18" else 28
        pictures, labels = torch.randint(256, (6000, 1, 28, 28), dtype=torch.uint8), torch.randint(10, (6000,))
        rows = torch.arange(side) * 28 // side

        def example():
            which = torch.randint(6000, (batch,))
            x = pictures.index_select(0, which).float().mul_(1 / 90.0).sub_(0.81)
            return (x.index_select(2, rows).index_select(3, rows) if side != 28 else x), labels.index_select(0, which)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)

    def step():
        x, y = example()
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten()) if name == "gpt" else F.cross_entropy(logits, y)
        del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    if profile:
        print(json.dumps({"peak_bytes": profiled_peak(torch, model, step)}))
        return
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append(1000 * (time.perf_counter() - start))
    print(json.dumps({"step_ms": statistics.median(times), "torch": torch.__version__,
                      "parameters": sum(p.numel() for p in model.parameters())}))


def profiled_peak(torch, model, step):
    """What tensors hold at most during a step, from the profiler's memory events: those that live before, and the rise."""
    step()
    step()
    held = sum(p.numel() * p.element_size() for p in model.parameters()) * 3  # and two moments
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    with tempfile.TemporaryDirectory() as folder:
        file = folder + "/trace.json"
        profile.export_chrome_trace(file)
        events = json.load(gzip.open(file) if file.endswith(".gz") else open(file))["traceEvents"]
    changes = sorted((e["ts"], e["args"]["Bytes"]) for e in events if e.get("name") == "[memory]")
    live = rise = 0
    for _, size in changes:
        live += size
        rise = max(rise, live)
    return held + rise


def idle_resident(command):
    return child(command)[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(COURSES))
    parser.add_argument("--out")
    parser.add_argument("--pytorch", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pytorch:
        train_in_pytorch(arguments.pytorch, arguments.profile)
        return 0

    def run_pytorch(name, *more):
        output, resident = child([sys.executable, __file__, "--pytorch", name, *more])
        return {**json.loads(output), "resident_bytes": resident}

    idle = {"tenon": idle_resident([arguments.program, "devices"]),
            "pytorch": idle_resident([sys.executable, "-c", "import torch"])}
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    lines = [f"# Training, Tenon against PyTorch eager: {THREADS} threads on {cpu}, {os.cpu_count()} cores.",
             f"# Medians of {arguments.rounds} rounds in turn: python bench/train/against_pytorch.py TENON",
             f"{'model':<10} {'parameters':>11} {'batch':>5}  {'Tenon ms':>9} {'PyTorch ms':>10} {'ratio':>6}  "
             f"{'Tenon peak MiB':>14} {'PyTorch':>8} {'ratio':>6}  {'resident MiB':>12} {'PyTorch':>8}"]
    worst = 0.0
    for name in arguments.models.split(","):
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(run_tenon(arguments.program, name))
            theirs.append(run_pytorch(name))
        assert ours[0]["parameters"] == theirs[0]["parameters"], (name, ours[0], theirs[0])
        peak = run_pytorch(name, "--profile")["peak_bytes"]
        middle = lambda runs, key: statistics.median(run[key] for run in runs)
        mib = lambda size: size / 1024 ** 2
        time_ratio = middle(ours, "step_ms") / middle(theirs, "step_ms")
        memory_ratio = middle(ours, "peak_bytes") / peak
        worst = max(worst, time_ratio, memory_ratio)
        lines.append(
            f"{name:<10} {ours[0]['parameters']:>11,} {COURSES[name][0]:>5}  {middle(ours, 'step_ms'):>9.2f} "
            f"{middle(theirs, 'step_ms'):>10.2f} {time_ratio:>6.2f}  {mib(middle(ours, 'peak_bytes')):>14.1f} "
            f"{mib(peak):>8.1f} {memory_ratio:>6.2f}  {mib(middle(ours, 'resident_bytes') - idle['tenon']):>12.1f} "
            f"{mib(middle(theirs, 'resident_bytes') - idle['pytorch']):>8.1f}")
        print(lines[-1], file=sys.stderr)
        version = theirs[0]["torch"]
    lines.insert(2, f"# PyTorch {version}. Peaks are what tensors ask for within a step, data sets left out.")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)
    return 0 if worst <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
