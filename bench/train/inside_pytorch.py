#!/usr/bin/env python3
"""Tenon's allocators inside an unmodified PyTorch on a GPU, beside PyTorch's own: step time, peak memory, equal losses.

  python bench/train/inside_pytorch.py [--library build/release/lib/libtenon_pytorch_allocator.so] [--models gpt,lengths,cnn]
      [--allocators native,native-expandable,caching,expandable,mortise] [--steps 20] [--limit 110] [--no-features]

The module tenon_torch.py is taken from compat/pytorch, else from beside the library (lib/tenon/python).

Each row is a process of its own; the next ones import torch meanwhile and wait. Models are written in plain PyTorch and made
of seeds, so that all rows of a model do the same sums: their losses have to agree bit for bit. An allocator is a name or SPEC
of Tenon's, or native, native-expandable. The time of a row is the median of its steps without the first few; peaks and device
calls are of the whole row, by the allocator's own figures ("on the device" is cudaMemGetInfo's, contexts and libraries
included). A row that fails shows its error. Then `features`: what programs ask of an allocator besides memory.
Exit code 0; 1: a row failed, or losses differ while those under PyTorch's own allocators agree; 2: no PyTorch with CUDA here.
A row for which no time was left is no failure.
"""
import argparse
import hashlib
import json
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[2]
NATIVE = {"native": "", "native-expandable": "expandable_segments:True"}
NO_POOLS = "private pools"  # what an allocator without them refuses a graph with: an answer, and no failure
NO_TIME = "not run: no time was left"
WARM_UP = 5  # steps that load libraries and choose algorithms
MIB = 1024 ** 2


# What is trained. Each returns the function of one step, which gives its loss as a tensor.


def cnn(torch):
    """A residual network of 18 layers on pictures of 224 × 224, float32, SGD with momentum."""
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
            self.short = (nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
                          if stride != 1 or inputs != outputs else nn.Identity())

        def forward(self, x):
            y = F.relu(self.norms[0](self.first(x)))
            return F.relu(self.norms[1](self.second(y)) + self.short(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
            widths = [64, 64, 128, 128, 256, 256, 512, 512]
            self.blocks = nn.Sequential(*[Block(before, after, 1 + (after != before))
                                          for before, after in zip([64, *widths], widths)])
            self.head = nn.Linear(512, 1000)

        def forward(self, x):
            return self.head(self.blocks(F.avg_pool2d(self.stem(x), 2)).mean((2, 3)))

    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(_):
        x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(1000, (64,), device="cuda")
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def transformer(torch, width, layers, heads, context, vocabulary):
    """A decoder as GPT-2's, all of it in bfloat16."""
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = (part.view(batch, length, heads, -1).transpose(1, 2)
                       for part in self.qkv(self.norms[0](x)).split(width, 2))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            y = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
            return F.linear(self.norm(self.blocks(y)), self.tokens.weight)

    with torch.device("cuda"):
        model = Gpt()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step(batch, length):
        x = torch.randint(vocabulary, (batch, length + 1), device="cuda")
        logits = model(x[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), x[:, 1:].flatten())
        del logits
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpt(torch):
    """GPT-2 small, 124 million parameters, 8 texts of 1024 tokens."""
    step = transformer(torch, 768, 12, 12, 1024, 50257)
    return lambda _: step(8, 1024)


def lengths(torch):
    """A smaller one on batches of 2 to 16 texts of 64 to 2048 tokens: other sizes in each step."""
    import random

    step, draw = transformer(torch, 768, 6, 12, 2048, 32000), random.Random(5)

    def of_any_length(_):
        length = draw.randrange(64, 2049)
        return step(max(2, min(16, draw.randrange(6144, 12289) // length)), length)

    return of_any_length


MODELS = {"gpt": gpt, "lengths": lengths, "cnn": cnn}
TIMES_STEPS = {"lengths": 2}  # more of them: they differ


# One row, in a process of its own.


def begin(row, library):
    """PyTorch with the allocator of that row, its device not touched yet; and where the figures come from."""
    import torch

    if row in NATIVE:
        return torch, torch.cuda
    import tenon_torch

    tenon_torch.use(row, library=library)
    return torch, tenon_torch


def device_calls(stats):
    return stats["num_device_alloc"] + stats["num_device_free"]


def make_deterministic(torch):
    """Equal sums from run to run; the list gets what PyTorch warns that it cannot do so."""
    doubtful = []

    def note(message, *_, **__):
        words = str(message).split()
        if "deterministic" in str(message) and words[0] not in doubtful:
            doubtful.append(words[0])

    warnings.showwarning = note
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_cudnn_sdp(False)  # of the fused attentions, flash alone has a deterministic backward pass
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.use_deterministic_algorithms(True, warn_only=True)
    return doubtful


def train(torch, figures, model, steps):
    doubtful = make_deterministic(torch)
    torch.manual_seed(47)
    step = MODELS[model](torch)
    losses, times = [], []
    calls = 0
    for index in range(WARM_UP + steps):
        start = time.perf_counter()
        losses.append(step(index).item())  # waits
        times.append(1000 * (time.perf_counter() - start))
        if index + 1 == WARM_UP:
            calls = device_calls(figures.memory_stats())
    stats = figures.memory_stats()
    free, total = torch.cuda.mem_get_info()
    return {"step_ms": statistics.median(times[WARM_UP:]), "loss": losses[-1],
            "losses": hashlib.sha256(",".join(loss.hex() for loss in losses).encode()).hexdigest(),
            "requested": stats["requested_bytes.all.peak"], "allocated": stats["allocated_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.peak"], "on_device": total - free, "calls": device_calls(stats),
            "calls_later": device_calls(stats) - calls, "doubtful": doubtful, "ooms": stats["num_ooms"], "retries": stats["num_alloc_retries"],
            "device": torch.cuda.get_device_name(), "torch": torch.__version__}


def features(torch, figures):
    """What programs ask of an allocator besides memory; each is right, or raises."""

    def out_of_memory():
        total = torch.cuda.mem_get_info()[1]
        try:
            torch.empty(2 * total, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            return str(error).split("\n")[0]
        raise AssertionError("twice the device's memory was given")

    def record_stream():
        def use_elsewhere(record):
            side = torch.cuda.Stream()
            ones = torch.ones(1 << 22, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                torch.cuda._sleep(500_000_000)  # some 0.3 s
                total = ones.sum()
            if record:
                ones.record_stream(side)
            address = ones.data_ptr()
            del ones
            others = [torch.zeros(1 << 22, device="cuda") for _ in range(4)]
            again, busy = any(other.data_ptr() == address for other in others), not side.query()
            side.synchronize()
            return again, busy, total.item()

        use_elsewhere(record=True)  # loads kernels, which may wait for the device
        again, busy, total = use_elsewhere(record=True)
        assert not (again and busy), "used again before the other stream was done"
        assert total == 1 << 22, total
        if not busy:
            return "not known: the other stream was done too early"
        again, busy, _ = use_elsewhere(record=False)  # so that the check can fail
        return None if again and busy else "right, though without it nothing was used again either"

    def streams():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            x = torch.randn(512, 512, device="cuda")
            for _ in range(20):
                x = torch.tanh(x @ x)
        torch.cuda.current_stream().wait_stream(side)
        assert torch.isfinite(x).all().item()

    def limit():
        torch.cuda.set_per_process_memory_fraction(0.01)
        try:
            torch.empty(int(0.02 * torch.cuda.mem_get_info()[1]), dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            return None
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        raise AssertionError("more than the limit was given")

    def empty_cache():
        x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        del x
        torch.cuda.synchronize()
        before = figures.memory_reserved()
        torch.cuda.empty_cache()
        after = figures.memory_reserved()
        assert after < before, f"{before} bytes before, {after} after"

    def threads():
        problems = []

        def work(seed):
            try:
                generator = torch.Generator("cuda").manual_seed(seed)
                with torch.cuda.stream(torch.cuda.Stream()):
                    for size in range(1, 200):
                        x = torch.rand(size * 1000, device="cuda", generator=generator)
                        assert (x + 1).min().item() >= 1
            except Exception as error:  # shown by the thread that asked
                problems.append(error)

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if problems:
            raise problems[0]

    def graph():
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
        x = torch.randn(64, 256, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(x).sum().backward()
        torch.cuda.current_stream().wait_stream(side)
        for parameter in model.parameters():
            parameter.grad = None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = model(x).square().sum()
            loss.backward()
        noise = [torch.full((1 << 20,), float("nan"), device="cuda") for _ in range(8)]  # into what it must not use
        x.normal_()
        graph.replay()
        torch.cuda.synchronize()
        captured = [loss.item(), *(parameter.grad.clone() for parameter in model.parameters())]
        for parameter in model.parameters():
            parameter.grad = None
        eager = model(x).square().sum()
        eager.backward()
        assert abs(captured[0] - eager.item()) <= 1e-3 * abs(eager.item()), (captured[0], eager.item())
        for ours, parameter in zip(captured[1:], model.parameters()):
            torch.testing.assert_close(ours, parameter.grad, rtol=1e-3, atol=1e-3)
        del noise, graph

    results = {}
    for check in (streams, threads, record_stream, empty_cache, limit, out_of_memory, graph):
        start = time.perf_counter()
        try:
            results[check.__name__] = check() or "right"
        except Exception as error:  # the others are still worth a look
            results[check.__name__] = f"{type(error).__name__}: {error}".split("\n")[0]
            if check is not graph or NO_POOLS not in str(error):
                results["failed"] = True
        if time.perf_counter() - start > 2:
            results[check.__name__] += f" ({time.perf_counter() - start:.0f} s)"
    return results


def child(arguments):
    """Prints "ready", waits for a line, prints a line of JSON."""
    reports = os.fdopen(os.dup(1), "w")  # whatever else prints
    os.dup2(2, 1)
    try:
        torch, figures = begin(arguments.row, arguments.library)
        print("ready", file=reports, flush=True)
        if not sys.stdin.readline():
            return 1
        if arguments.child == "features":
            result = features(torch, figures)
        else:
            result = train(torch, figures, arguments.child, arguments.steps * TIMES_STEPS.get(arguments.child, 1))
    except Exception as error:  # the row shows it
        result = {"error": f"{type(error).__name__}: {error}".split("\n")[0]}
    print(json.dumps(result), file=reports, flush=True)
    reports.close()
    os._exit(0) if "error" in result else None  # an allocator in trouble need not be torn down
    return 0


# The table.


class Row:
    """A child that has been started."""

    def __init__(self, name, row, arguments):
        self.name, self.row = name, row
        environment = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
        for variable in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TENON_ALLOCATOR"):
            environment.pop(variable, None)
        if NATIVE.get(row):
            environment.update(PYTORCH_CUDA_ALLOC_CONF=NATIVE[row], PYTORCH_ALLOC_CONF=NATIVE[row])
        places = [arguments.module] if arguments.module else [ROOT / "compat/pytorch"]
        if arguments.library:
            places.append(arguments.library.resolve().parent / "tenon/python")
        environment["PYTHONPATH"] = os.pathsep.join([*map(str, places), environment.get("PYTHONPATH", "")])
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        command = [sys.executable, str(HERE), "--child", name, "--row", row, "--steps", str(arguments.steps)]
        if arguments.library:
            command += ["--library", str(arguments.library)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=environment)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def result(self, seconds):
        """Runs it, for so many seconds at most."""
        end = time.monotonic() + seconds
        try:
            line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            if line == "ready":
                self.process.stdin.write("go\n")
                self.process.stdin.flush()
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
        except (queue.Empty, OSError):
            line = ""
        if line:
            try:
                self.process.wait(max(1.0, min(10.0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                pass
            result = json.loads(line)
            if self.process.poll() not in (0, None):
                result["error"] = f"it did its work and then ended with {self.process.poll()}: {self._last_error()}"
        elif line == "":
            result = {"error": f"stopped after {seconds:.0f} s"}
        else:
            result = {"error": f"ended with {self.process.wait()}: {self._last_error()}"}
        self.stop()
        return result

    def _last_error(self):
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def results(rows, arguments):
    """(model, allocator, result) of each row, in their order; two of them get ready while one runs."""
    end = time.monotonic() + arguments.limit
    waiting = []
    rows = list(rows)
    try:
        while rows or waiting:
            while rows and len(waiting) < 3:
                waiting.append(Row(*rows.pop(0), arguments))
            row = waiting.pop(0)
            left = end - time.monotonic()
            if left < 3:
                row.stop()
                yield row.name, row.row, {"error": NO_TIME}
            else:
                start = time.monotonic()
                result = row.result(min(left, arguments.row_limit))
                if left < arguments.row_limit and result.get("error", "").startswith("stopped"):
                    result = {"error": NO_TIME}
                yield row.name, row.row, {**result, "seconds": time.monotonic() - start}
    finally:
        for row in waiting:
            row.stop()


def label(row):
    return {"native": "PyTorch", "native-expandable": "PyTorch, expandable segments"}.get(row, f"Tenon `{row}`")


def line_of(model, row, result, first):
    if "error" in result:
        return f"| {model} | {label(row)} | {result['error'].replace('|', '/')} | | | | | | |"
    mib = lambda key: f"{result[key] / MIB:.0f}"
    agrees = "-" if first is result else "equal" if result["losses"] == first.get("losses") else "differ"
    return (f"| {model} | {label(row)} | {result['step_ms']:.2f} | {mib('requested')} | {mib('allocated')} | {mib('reserved')} | "
            f"{mib('on_device')} | {result['calls']}, {result['calls_later']} | {agrees} |")


def judge(everything):
    """A sentence on each row that is wrong; prints what is not known."""
    problems = []
    for result in everything:
        if result.get("failed") or result.get("error", NO_TIME) != NO_TIME:
            problems.append(f"{result['model']} under {label(result['allocator'])} failed")
    for model in dict.fromkeys(result["model"] for result in everything if "losses" in result):
        courses = {result["allocator"]: result["losses"] for result in everything if result["model"] == model and "losses" in result}
        own = {losses for row, losses in courses.items() if row in NATIVE}
        if len(own) > 1:
            print(f"\nLosses of {model} differ under PyTorch's own allocators: they say nothing about others.")
        elif own:
            problems += [f"{model}: other losses under {label(row)}" for row, losses in courses.items() if losses not in own]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, help="libtenon_pytorch_allocator.so; else where tenon_torch.py finds it")
    parser.add_argument("--module", type=pathlib.Path, help="the folder of tenon_torch.py, where it is another one")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--allocators", default="native,native-expandable,caching,expandable,mortise", help="names, or SPECs "
                        "that have no comma; the first is what losses are compared with")
    parser.add_argument("--steps", type=int, default=20, help="steps of a row that are timed")
    parser.add_argument("--limit", type=float, default=110, help="seconds for everything; bench/gpu_check may leave less")
    parser.add_argument("--row-limit", type=float, default=40, help="seconds for a row")
    parser.add_argument("--no-features", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, help="also writes the results as JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments)
    if subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"],
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"inside_pytorch: {sys.executable} has no PyTorch that can use a GPU here", file=sys.stderr)
        return 2
    start = time.monotonic()
    arguments.limit = min(arguments.limit, float(os.environ.get("GPU_CHECK_SECONDS", "inf")) - 10)
    models, allocators = arguments.models.split(","), arguments.allocators.split(",")
    wanted = [(model, allocator) for model in models for allocator in allocators]
    if not arguments.no_features:
        wanted += [("features", allocator) for allocator in allocators if allocator != "native-expandable"]
    print("| model | allocator | step, ms | requested, MiB | allocated | reserved | on the device | device calls, after step "
          f"{WARM_UP} | losses |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    first, everything = {}, []
    for model, row, result in results(wanted, arguments):
        everything.append({"model": model, "allocator": row, **result})
        if model != "features":
            print(line_of(model, row, result, first.setdefault(model, result)), flush=True)
    for result in everything:
        if result["model"] == "features":
            print(f"\n{label(result['allocator'])}:")
            for name, outcome in result.items():
                if name not in ("model", "allocator", "failed", "seconds"):
                    print(f"* {name.replace('_', ' ')}: {outcome}")
    machine = next((result for result in everything if "device" in result), None)
    if machine:
        print(f"\n{machine['device']}, PyTorch {machine['torch']}; {time.monotonic() - start:.0f} s in all")
    for name in sorted({name for result in everything for name in result.get("doubtful", [])}):
        print(f"PyTorch has no deterministic `{name}`: losses may differ for that reason")
    if arguments.out:
        arguments.out.write_text(json.dumps(everything, indent=1) + "\n")
    problems = judge(everything)
    if problems:
        print("\n" + "\n".join(problems))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
