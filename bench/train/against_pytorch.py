#!/usr/bin/env python3
"""Step time and peak memory of training, Tenon against PyTorch eager: same model, batch, optimiser and threads.

  python bench/train/against_pytorch.py build/release/bin/tenon [--rounds 5] [--models mlp,lenet,…] [--out FILE]
      [--device cuda] [--pictures DIR] [--text FILE] [--alone] [--precision bfloat16-mixed]

Each figure is the median over rounds in which the two take turns, each run in a process of its own; the time of a run is
the median of its steps without the first few. Memory is the peak of what tensors asked for: Tenon's own statistics,
PyTorch's profiler in a run that is not timed. The peak of the process's resident memory stands beside it, less that of a
process that only loads the framework. Exit code 1 when a ratio is above 1; on another device than the cpu no ratio is
judged. There PyTorch's peak is its allocator's own figure, workspaces of the libraries included. --alone runs no PyTorch.
--precision bfloat16-mixed (float16-mixed) trains under autocast on both sides, and Tenon in float32 as well in each round:
the last columns are that step's time and what the mixed one takes of it. Ratios to PyTorch are of its own autocast.
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
    "resnet50": (8, 5, ["model.name=resnet50", "model.image_size=64"]),
    "unet": (16, 5, ["model.name=unet", "model.image_size=64", "model.hidden=32", "model.layers=3"]),
    "vit": (32, 5, ["model.name=vit", "model.hidden=384", "model.layers=6", "model.heads=6", "model.patch=4"]),
    "lstm-lm": (32, 10, ["model.name=lstm-lm", "data.name=text", "model.hidden=256", "model.layers=2",
                         "model.context=64"]),
    "gpt": (16, 5, ["model.name=gpt", "data.name=text", "model.hidden=384", "model.layers=6", "model.heads=6",
                    "model.context=128"]),
    # GPT-2 small: 124 million parameters, all of it in bfloat16. For devices other than the cpu.
    "gpt124m": (8, 5, ["model.name=gpt", "data.name=text", "model.hidden=768", "model.layers=12", "model.heads=12",
                       "model.context=1024", "model.vocabulary=50257", "train.precision=bfloat16"]),
}
# All but the last, in the order of the table.
ON_CPU = "mlp,lenet,resnet18,resnet50,unet,vit,lstm-lm,gpt"
GPTS = {
    # name: (width, layers, heads, context, vocabulary), the last 0 for that of the text
    "gpt": (384, 6, 6, 128, 0),
    "gpt124m": (768, 12, 12, 1024, 50257),
}


def child(command, **options):
    """Runs a command; its stdout, and the peak of its resident memory in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with status {status}")
    return output, usage.ru_maxrss * 1024


def steps_of(name, device):
    """A device's first steps load libraries and compile kernels: more of them follow there."""
    steps = COURSES[name][1]
    return steps if device == "cpu" else max(steps, 20 if name == "gpt124m" else 50)


def settings_of(name, device="cpu", pictures=None, text=None, precision=None):
    """The settings of `tenon run`; where the data lies: `pictures`, a folder as MNIST's, and the file or folder `text`."""
    batch, _, words = COURSES[name]
    settings = [*words, f"train.batch_size={batch}", f"train.max_steps={steps_of(name, device)}", "train.epochs=1000",
                "data.test_limit=1", "train.test_batch_size=1", f"train.threads={THREADS}", "report.html=false",
                "report.estimate=false", "data.limit=6000"]
    if device != "cpu":
        settings.append(f'device.name="{device}"')
    if device == "cuda":
        settings.append("device.cuda.cudnn_deterministic=false")  # as PyTorch's default
    if precision:
        settings.append(f"train.precision={precision}")
    path = text if "data.name=text" in words else pictures
    return settings + ([f'data.path="{path}"'] if path else [])


def run_tenon(program, name, settings):
    with tempfile.TemporaryDirectory() as folder:
        toml = pathlib.Path(folder) / "experiment.toml"
        toml.write_text("")
        command = [program, "run", toml, *settings, "--out", pathlib.Path(folder) / "out", "--quiet"]
        _, resident = child(command)
        result = json.load(open(pathlib.Path(folder) / "out" / "result.json"))
    # Between steps there are parameters, two moments, and the data set, which is not part of the comparison.
    parameters = result["result"]["parameters"]
    element = 2 if "train.precision=bfloat16" in settings else 4
    data_set = result["timeline"][-1]["requested_bytes"] - 3 * element * parameters
    return {"step_ms": result["result"]["step_ms"]["p50"], "parameters": parameters, "resident_bytes": resident,
            "peak_bytes": result["memory"]["peak_requested_bytes"] - data_set}


def train_in_pytorch(name, profile, device, text, precision):
    """In a process of its own: prints one line of JSON."""
    import torch
    from torch.nn import functional as F

    import common

    torch.set_num_threads(THREADS)
    torch.manual_seed(47)
    batch, steps = COURSES[name][0], steps_of(name, device)
    if "data.name=text" in COURSES[name][2]:
        training, _, vocabulary = common.read_text(text or "/usr/share/common-licenses")
        if name in GPTS:
            width, layers, heads, context, room = GPTS[name]
            model = common.Gpt(room or vocabulary, context, width, layers, heads)
        else:
            model, context = common.LstmLm(vocabulary, 256, 2), 64
        windows = training[: len(training) // context * context].view(-1, context)

        def example():
            x = windows[torch.randint(len(windows) - 1, (batch,))]
            return x, x.roll(-1, 1)
    else:
        model = {"mlp": common.mlp, "lenet": common.lenet, "resnet18": lambda: common.ResNet((2, 2, 2, 2), True),
                 "resnet50": lambda: common.ResNet((3, 4, 6, 3), False), "unet": lambda: common.Unet(32, 3),
                 "vit": lambda: common.Vit(28, 4, 384, 6, 6)}[name]()
        side = 64 if "model.image_size=64" in COURSES[name][2] else 28
        pictures, labels = torch.randint(256, (6000, 1, 28, 28), dtype=torch.uint8), torch.randint(10, (6000,))
        rows = torch.arange(side) * 28 // side

        def example():
            which = torch.randint(6000, (batch,))
            raw, y = pictures.index_select(0, which), labels.index_select(0, which)
            raw = raw.index_select(2, rows).index_select(3, rows) if side != 28 else raw
            if name == "unet":
                y = y.view(-1, 1, 1).expand(raw.select(1, 0).shape).masked_fill(raw.select(1, 0).eq(0), 10)
            return raw.float().mul_(1 / 90.0).sub_(0.81), y
    model.to(device)
    if "train.precision=bfloat16" in COURSES[name][2]:
        model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    lower = {"bfloat16-mixed": torch.bfloat16, "float16-mixed": torch.float16}.get(precision)
    scaler = torch.amp.GradScaler(device, enabled=lower == torch.float16)

    def step():
        x, y = (part.to(device) for part in example())
        with torch.autocast(device, dtype=lower or torch.bfloat16, enabled=lower is not None):
            logits = model(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten()) if logits.dim() == 3 else F.cross_entropy(logits, y)
        del logits
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
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
    figures = {"step_ms": statistics.median(times), "torch": torch.__version__,
               "parameters": sum(p.numel() for p in model.parameters())}
    if device != "cpu":
        figures["peak_bytes"] = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    print(json.dumps(figures))


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


def middle(runs, key):
    return statistics.median(run[key] for run in runs)


def row_of(name, ours, theirs, idle, wide):
    """A line of the table, and the larger of its ratios of time and of peak memory; without PyTorch 0. `wide`: Tenon's runs
    in float32, where the others are in mixed precision."""
    mib = lambda size: size / 1024 ** 2
    figures = [middle(ours, "step_ms"), mib(middle(ours, "peak_bytes")), mib(middle(ours, "resident_bytes") - idle["tenon"])]
    start = f"{name:<10} {ours[0]['parameters']:>11,} {COURSES[name][0]:>5}  {figures[0]:>9.2f} "
    end = ""
    if wide:
        end = f"  {middle(wide, 'step_ms'):>10.2f} {figures[0] / middle(wide, 'step_ms'):>10.2f}"
    if not theirs:
        return start + f"{'-':>10} {'-':>6}  {figures[1]:>14.1f} {'-':>8} {'-':>6}  {figures[2]:>12.1f} {'-':>8}" + end, 0.0
    assert ours[0]["parameters"] == theirs[0]["parameters"], (name, ours[0], theirs[0])
    step, peak = middle(theirs, "step_ms"), mib(middle(theirs, "peak_bytes"))
    resident = mib(middle(theirs, "resident_bytes") - idle["pytorch"])
    return (start + f"{step:>10.2f} {figures[0] / step:>6.2f}  {figures[1]:>14.1f} {peak:>8.1f} {figures[1] / peak:>6.2f}  "
            f"{figures[2]:>12.1f} {resident:>8.1f}" + end, max(figures[0] / step, figures[1] / peak))


def heading(arguments, version):
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    device = "" if arguments.device == "cpu" else f", on {arguments.device}"
    more = f" --precision {arguments.precision}" if arguments.precision else ""
    columns = f"  {'float32 ms':>10} {'of float32':>10}" if arguments.precision else ""
    return [f"# Training, Tenon against PyTorch eager: {THREADS} threads on {cpu}, {os.cpu_count()} cores{device}.",
            f"# Medians of {arguments.rounds} rounds in turn: python bench/train/against_pytorch.py TENON{more}",
            f"# {version}. Peaks are what tensors ask for within a step, data sets left out.",
            f"{'model':<10} {'parameters':>11} {'batch':>5}  {'Tenon ms':>9} {'PyTorch ms':>10} {'ratio':>6}  "
            f"{'Tenon peak MiB':>14} {'PyTorch':>8} {'ratio':>6}  {'resident MiB':>12} {'PyTorch':>8}{columns}"]


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=ON_CPU, help=", ".join(COURSES))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--pictures")
    parser.add_argument("--text")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--precision", choices=["bfloat16-mixed", "float16-mixed"])
    parser.add_argument("--out")
    parser.add_argument("--pytorch", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.pytorch:
        train_in_pytorch(arguments.pytorch, arguments.profile, arguments.device, arguments.text, arguments.precision)
        return 0
    place = ["--device", arguments.device, *(["--text", arguments.text] if arguments.text else []),
             *(["--precision", arguments.precision] if arguments.precision else [])]

    def run_pytorch(name, *more):
        output, resident = child([sys.executable, __file__, "--pytorch", name, *place, *more])
        return {**json.loads(output), "resident_bytes": resident}

    idle = {"tenon": idle_resident([arguments.program, "devices"])}
    if not arguments.alone:
        idle["pytorch"] = idle_resident([sys.executable, "-c", "import torch"])
    rows, worst, version = [], 0.0, "Without PyTorch"
    for name in arguments.models.split(","):
        where = (arguments.device, arguments.pictures, arguments.text)
        settings = settings_of(name, *where, arguments.precision)
        ours, theirs, wide = [], [], []
        for _ in range(arguments.rounds):
            ours.append(run_tenon(arguments.program, name, settings))
            if arguments.precision:
                wide.append(run_tenon(arguments.program, name, settings_of(name, *where)))
            if not arguments.alone:
                theirs.append(run_pytorch(name))
        if theirs:
            version = f"PyTorch {theirs[0]['torch']}"
            if arguments.device == "cpu":
                peak = run_pytorch(name, "--profile")["peak_bytes"]
                theirs = [{**run, "peak_bytes": peak} for run in theirs]
        row, ratio = row_of(name, ours, theirs, idle, wide)
        worst = max(worst, ratio)
        rows.append(row)
        if sys.stderr.isatty():
            print(row, file=sys.stderr)
    text = "\n".join(heading(arguments, version) + rows) + "\n"
    print(text, end="")
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)
    return 0 if worst <= 1.0 or arguments.device != "cpu" else 1


if __name__ == "__main__":
    sys.exit(main())
