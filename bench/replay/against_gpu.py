#!/usr/bin/env python3
"""How far a replay without a GPU foretells what PyTorch does on one: peaks, device calls, retries, and the advice of `tune`.

  bench/replay/against_gpu.py build/release/bin/tenon [--workloads a,b] [--steps 30] [--jobs 4] [--out FILE] [--keep DIR]

Needs a GPU and a PyTorch with CUDA as `python3`; no network. Each workload is a program in plain PyTorch. It runs once with
its memory recorded, under PyTorch's own settings, and `tenon replay` foretells from that one snapshot what every setting below
reserves, with the whole device and under a limit (set_per_process_memory_fraction) below what PyTorch's settings want; then the
program runs for real under each of them, and under the one that `tenon tune` recommends, without being recorded. A row is exact
when both peaks of reserved memory are the same to the byte, and both fit or neither. Exit code 1: a program failed, or the
device calls of a recording are not reproduced.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile

MIB = 1024 ** 2
SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:8",
            "garbage_collection_threshold:0.6"]


# ---- the workloads, each in a process of its own ----

def resnet_sizes(torch, steps):
    """A convolution network in float16 whose pictures have another size in every step."""
    from torch import nn
    draw = random.Random(1)

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
            self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride != 1 or inputs != outputs else nn.Identity()

        def forward(self, x):
            return torch.relu(self.body(x) + self.short(x))

    widths = [64, 64, 128, 256, 512]
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for i in range(4):
        layers += [Residual(widths[i], widths[i + 1], 1 if i == 0 else 2), Residual(widths[i + 1], widths[i + 1], 1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(steps):
        side = draw.choice([128, 160, 192, 224, 256, 288])
        x, y = torch.randn(64, 3, side, side, device="cuda"), torch.randint(1000, (64,), device="cuda")
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def transformer(torch, width, layers, heads, vocabulary, context, checkpointed=False):
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, past=None):
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, heads, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
            if past is not None:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            x = x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))
            return x, (k, v)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids, past=None, start=0):
            x = self.words(ids) + self.places(torch.arange(start, start + ids.shape[1], device=ids.device))
            kept = []
            for i, block in enumerate(self.blocks):
                if checkpointed:
                    x, _ = checkpoint(block, x, use_reentrant=False)
                else:
                    x, pair = block(x, past[i] if past else None)
                    kept.append(pair)
            return self.head(self.norm(x)), kept

    return Model().cuda()


def gpt_lengths(torch, steps):
    """A GPT of 124 million parameters, AdamW, bfloat16 by autocast, batches of another length in every step."""
    draw = random.Random(2)
    model = transformer(torch, 768, 12, 12, 50257, 1024)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        ids = torch.randint(50257, (4, draw.randrange(128, 1024)), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits, _ = model(ids)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.roll(-1, 1).flatten())
        del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 9:
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                model(torch.randint(50257, (8, 512), device="cuda"))


def gpt_checkpointed(torch, steps):
    """A deeper GPT with checkpointed blocks, gradient accumulation, clipping, and empty_cache now and then."""
    draw = random.Random(3)
    model = transformer(torch, 1024, 16, 16, 32000, 2048, checkpointed=True).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        for _ in range(2):
            ids = torch.randint(32000, (draw.randrange(2, 9), draw.choice([512, 768, 1024, 1536])), device="cuda")
            logits, _ = model(ids)
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.roll(-1, 1).flatten()).backward()
            del logits
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 12 == 11:
            torch.cuda.empty_cache()


def decoding(torch, steps):
    """Requests that are decoded word by word with a cache of keys and values that grows by concatenation."""
    draw = random.Random(4)
    model = transformer(torch, 1024, 12, 16, 32000, 4096).half().eval()
    with torch.no_grad():
        for _ in range(max(1, steps // 5)):
            batch, length = draw.randrange(1, 17), draw.randrange(64, 1500)
            ids = torch.randint(32000, (batch, length), device="cuda")
            logits, past = model(ids)
            for i in range(40):
                ids = logits[:, -1:].argmax(-1)
                logits, past = model(ids, past, length + i)


def unet_streams(torch, steps):
    """A U-Net on pictures of several shapes, which a stream of its own brings to the device."""
    from torch import nn
    draw = random.Random(5)

    def twice(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 1, 1), nn.GroupNorm(8, outputs), nn.SiLU(),
                             nn.Conv2d(outputs, outputs, 3, 1, 1), nn.GroupNorm(8, outputs), nn.SiLU())

    class Unet(nn.Module):
        def __init__(self, widths=(64, 128, 256, 512)):
            super().__init__()
            self.down = nn.ModuleList(twice(a, b) for a, b in zip((3, *widths), widths))
            self.up = nn.ModuleList(twice(b + a, a) for a, b in reversed(list(zip(widths, widths[1:]))))
            self.last = nn.Conv2d(widths[0], 3, 1)

        def forward(self, x):
            kept = []
            for i, layer in enumerate(self.down):
                x = layer(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for layer, side in zip(self.up, reversed(kept[:-1])):
                x = layer(torch.cat([nn.functional.interpolate(x, scale_factor=2), side], 1))
            return self.last(x)

    model = Unet().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    loader = torch.cuda.Stream()
    shapes = [(256, 256), (192, 320), (320, 192), (128, 384), (384, 256)]

    def bring():
        height, width = draw.choice(shapes)
        with torch.cuda.stream(loader):
            return torch.randn(8, 3, height, width).pin_memory().to("cuda", non_blocking=True)

    following = bring()
    for _ in range(steps):
        torch.cuda.current_stream().wait_stream(loader)
        x = following
        x.record_stream(torch.cuda.current_stream())
        # The loader goes on once the device is idle: what a block waits for must not depend on how fast the device was.
        torch.cuda.synchronize()
        following = bring()
        loss = nn.functional.mse_loss(model(x + torch.randn_like(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del x, loss
        torch.cuda.synchronize()


WORKLOADS = {f.__name__: f for f in (resnet_sizes, gpt_lengths, gpt_checkpointed, decoding, unet_streams)}


def train(name, steps, snapshot, limit):
    """In a process of its own: prints what PyTorch's allocator counted as one line of JSON."""
    import torch
    torch.manual_seed(47)
    if limit:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
    if snapshot:
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=10 ** 7)
    failure = ""
    try:
        WORKLOADS[name](torch, steps)
    except torch.cuda.OutOfMemoryError as error:
        failure = str(error).split("\n")[0]
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot)
    properties = torch.cuda.get_device_properties(0)
    print(json.dumps({"reserved": stats["reserved_bytes.all.peak"], "allocated": stats["allocated_bytes.all.peak"],
                      "requested": stats["requested_bytes.all.peak"], "calls": stats.get("num_device_alloc", 0),
                      "retries": stats.get("num_alloc_retries", 0), "failure": failure, "torch": torch.__version__,
                      "gpu": properties.name, "memory": properties.total_memory}))


# ---- the comparison ----

def said(command, **options):
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return done.returncode, done.stdout, done.stderr.strip()


class Course:
    def __init__(self, arguments):
        self.tenon, self.steps = arguments.tenon, arguments.steps

    def real(self, name, setting, snapshot=None, limit=0):
        environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": setting}
        command = [sys.executable, __file__, "--child", name, "--steps", self.steps, "--limit", limit]
        code, output, error = said(command + (["--snapshot", snapshot] if snapshot else []), env=environment)
        if code != 0:
            return {"error": error.splitlines()[-1] if error else f"exit code {code}"}
        return json.loads(output.splitlines()[-1])

    def foretold(self, snapshot, settings, recorded, limit=0):
        """Rows of `tenon replay`, of the PyTorch that recorded: before May 2026 the lowest of equal blocks was taken."""
        command = [self.tenon, "replay", snapshot, "--format", "json", "--quiet", "--capacity", recorded["memory"]]
        fraction = repr(limit / recorded["memory"])
        is_older = tuple(map(int, recorded["torch"].split("+")[0].split(".")[:2])) < (2, 13)
        for setting in settings:
            if is_older and not setting:
                command += ["--allocator", "caching:ties=address" + (f",per_process_memory_fraction={fraction}" if limit else "")]
            else:
                limited = [f"per_process_memory_fraction:{fraction}"] if limit else []
                command += ["--pytorch-conf", ",".join([setting] * bool(setting) + limited)]
        code, output, error = said(command)
        if code not in (0, 4) or not output:
            raise SystemExit(f"tenon replay {snapshot.name}: {error or code}")
        rows = [row for row in json.loads(output)["rows"] if row["allocator"] != "ideal"]
        assert len(rows) == len(settings), rows
        return rows

    def advised(self, snapshot):
        code, output, error = said([self.tenon, "tune", snapshot, "--budget", "20s", "--format", "json", "--quiet"])
        return json.loads(output) if output else {"error": error or str(code)}


def line_to_paste(advice):
    """The best of PyTorch's settings that `tune` found, of those that every PyTorch with CUDA 13 knows."""
    rows = [row for row in advice.get("rows", []) if row["kind"] == "pytorch" and "large_segment" not in row["setting"]]
    best = min(rows, key=lambda row: (row["peak_reserved_bytes"], row["device_calls"]), default=None)
    return best["setting"] if best else None


def fidelity_of(advice):
    return next(iter(advice.get("fidelity", [])), {})


def fidelity_row(name, advice):
    found = fidelity_of(advice)
    reproduced = "all" if found.get("exact") else found.get("matching_device_calls", "none")
    return f"| {name} | {found.get('recorded_device_calls', 0)} | {reproduced} | `{line_to_paste(advice)}` |"


def cell(size):
    return f"{size / MIB:,.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon", nargs="?", type=pathlib.Path)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=", ".join(WORKLOADS))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=4, help="programs on the GPU at a time (4)")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the snapshots")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--snapshot", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        train(arguments.child, arguments.steps, arguments.snapshot, arguments.limit)
        return 0
    if not arguments.tenon:
        parser.error("the program tenon is missing")
    names = arguments.workloads.split(",")
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        course = Course(arguments)
        snapshots = {name: folder / f"{name}.pickle" for name in names}
        recorded = dict(zip(names, pool.map(lambda name: course.real(name, "", snapshots[name]), names)))
        advice, foretold, settings, limits = {}, {}, {}, {}
        for name in names:
            if "error" in recorded[name]:
                print(f"{name}: {recorded[name]['error']}", file=sys.stderr)
                continue
            advice[name] = course.advised(snapshots[name])
            line = line_to_paste(advice[name])
            settings[name] = SETTINGS + ([line] if line and line not in SETTINGS else [])
            foretold[name] = course.foretold(snapshots[name], settings[name], recorded[name])
            peaks = [row["peak_reserved_bytes"] for row in foretold[name]]
            # Less than PyTorch's own settings reserve, and more than the best of them: caches have to be given back.
            limits[name] = (min(peaks) + peaks[0]) // 2
        runs = {(name, setting, limit): pool.submit(course.real, name, setting, None, limit) for name in settings
                for setting in settings[name] for limit in (0, limits[name])}
        rows = []
        wrong = len(names) - len(settings) + sum(not fidelity_of(found).get("exact") for found in advice.values())
        for name in settings:
            tight = course.foretold(snapshots[name], settings[name], recorded[name], limits[name])
            for setting, free, bound in zip(settings[name], foretold[name], tight):
                for limit, row in ((0, free), (limits[name], bound)):
                    real = runs[name, setting, limit].result()
                    start = f"| {name} | `{setting or 'none'}` | {cell(limit) if limit else '-'} |"
                    if "error" in real:
                        wrong += 1
                        rows.append(f"{start} {real['error'].replace('|', '/')} | | | | | |")
                        continue
                    ended = lambda failed: "out of memory" if failed else "fits"
                    same = (real["reserved"] == row["peak_reserved_bytes"] and bool(real["failure"]) == bool(row["ooms"]))
                    rows.append(
                        f"{start} {cell(real['requested'])} | {cell(real['reserved'])} | {cell(row['peak_reserved_bytes'])} | "
                        f"{'exact' if same else format(row['peak_reserved_bytes'] / real['reserved'] - 1, '+.2%')} | "
                        f"{real['retries']} / {row['retries']} | {ended(real['failure'])} / {ended(row['ooms'])} |")
    first = next(iter(recorded.values()))
    text = "\n".join([
        f"# {first.get('gpu', 'no GPU')}, PyTorch {first.get('torch', 'unknown')}, {platform.machine()}: real / foretold", "",
        "| workload | PYTORCH_CUDA_ALLOC_CONF | limit, MiB | requested, MiB | reserved, MiB | foretold, MiB | difference | retries | ends |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|", *rows, "",
        "| workload | device calls recorded | reproduced | `tenon tune` |", "|---|---:|---|---|",
        *[fidelity_row(name, advice[name]) for name in advice]]) + "\n"
    print(text, end="")
    if arguments.keep:
        (folder / "advice.json").write_text(json.dumps(advice, indent=1))
    if arguments.out:
        arguments.out.write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
