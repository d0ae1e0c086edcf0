#!/usr/bin/env python3
"""Tenon's profiler beside PyTorch's: one training step of the same model, row by row.

  PYTHON bench/profiler/against_pytorch.py TENON_PROFILER_MODELS [--models lenet,gpt] [--out FILE]

PYTHON has torch; TENON_PROFILER_MODELS is build/release/bench/profiler/tenon_profiler_models. For every row of either
profiler: how often, and how many bytes it allocated minus those that it freed (CPU memory) by itself and with what it
calls. A row is

  equal    as often, as much memory by itself
  total    as often, as much memory with what it calls: the two libraries divide the operator in other inner operators
  inner    called as often by the program; other operators and backward nodes call it more often in one of the two
  named    another name for the same: the pairs in SAME

and anything else needs its reason in REASONS; one without makes the exit code 1. The table is Markdown.
"""
import argparse
import json
import pathlib
import subprocess
import sys

# PyTorch's name -> Tenon's, for the same operator or node.
SAME = {
    "MaxPool2DWithIndicesBackward0": "MaxPoolWithIndicesBackward0",
    "ScaledDotProductFlashAttentionForCpuBackward0": "ScaledDotProductAttentionBackward0",
}
SAME.update({f"autograd::engine::evaluate_function: {theirs}": f"autograd::engine::evaluate_function: {ours}"
             for theirs, ours in list(SAME.items())})
VIEWS = "PyTorch makes some views by UnsafeView where Tenon makes them by Reshape or not at all; none of them allocates"
# Why a row differs.
REASONS = {
    "ViewBackward0": VIEWS,
    "UnsafeViewBackward0": VIEWS,
    "ReshapeAliasBackward0": VIEWS,
    "autograd::engine::evaluate_function: ViewBackward0": VIEWS,
    "autograd::engine::evaluate_function: UnsafeViewBackward0": VIEWS,
    "autograd::engine::evaluate_function: ReshapeAliasBackward0": VIEWS,
    "Optimizer.zero_grad#SGD.zero_grad": "PyTorch leaves out what was allocated before the profiler started",
    "aten::add_": "Tenon's SGD is one kernel a parameter, no operator",
    "aten::new_ones": "the gradient that backward() begins with; PyTorch: ones_like",
    "aten::ones_like": "the gradient that backward() begins with; Tenon: new_ones",
    "aten::arange": "PyTorch's calls itself",
}

TORCH = r"""
import collections, json, sys, torch, torch.nn as nn, torch.nn.functional as F
from torch.profiler import profile, ProfilerActivity
torch.manual_seed(1)
W, H, S, C = 64, 4, 96, 32

class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 12, 5, padding=2), nn.Conv2d(12, 24, 5)
        self.fc1, self.fc2 = nn.Linear(24 * 5 * 5, 128), nn.Linear(128, 10)
    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(W), nn.LayerNorm(W)
        self.qkv, self.out = nn.Linear(W, 3 * W), nn.Linear(W, W)
        self.widen, self.narrow = nn.Linear(W, 4 * W), nn.Linear(4 * W, W)
    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, H, W // H).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, W))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))

class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols, self.positions = nn.Embedding(S, W), nn.Embedding(C, W)
        self.block0, self.block1 = Block(), Block()
        self.norm, self.head = nn.LayerNorm(W), nn.Linear(W, S, bias=False)
    def forward(self, tokens):
        x = self.symbols(tokens) + self.positions(torch.arange(tokens.size(1)))
        return self.head(self.norm(self.block1(self.block0(x))))

if sys.argv[1] == "lenet":
    model, x, y = LeNet(), torch.randn(16, 1, 28, 28), torch.randint(10, (16,))
    loss_of = lambda: F.cross_entropy(model(x), y)
else:
    model, x, y = Gpt(), torch.randint(S, (4, C)), torch.randint(S, (4, C))
    loss_of = lambda: F.cross_entropy(model(x).view(-1, S), y.view(-1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)

def step():
    optimizer.zero_grad(set_to_none=True)
    loss_of().backward()
    optimizer.step()

step()
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    step()
def works(e):
    return e is not None and (e.name.startswith("aten::") or "Backward" in e.name or "AccumulateGrad" in e.name)
outer = collections.Counter(e.name for e in p.events() if not works(e.cpu_parent))
print(json.dumps([{"name": e.key, "count": e.count, "self": e.self_cpu_memory_usage, "total": e.cpu_memory_usage,
                   "outer": outer[e.key]} for e in p.key_averages()]))
print(torch.__version__, file=sys.stderr)
"""


def rows_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:2])}: {done.stderr.strip()}")
    return {row["name"]: row for row in json.loads(done.stdout)}, done.stderr.strip()


NOTHING = {"count": 0, "self": 0, "total": 0, "outer": 0}


def verdict(name, a, b):
    if a["count"] == b["count"] and a["self"] == b["self"]:
        return "equal", ""
    if a["count"] == b["count"] and a["total"] == b["total"]:
        return "total", "with what it calls it is the same"
    if name in REASONS:
        return "reason", REASONS[name]
    if a["outer"] == b["outer"]:
        return "inner", f"called {a['outer']} times by the program in both, else by other operators"
    return "", ""


def table(model, program):
    ours, _ = rows_of([program, model])
    theirs, said = rows_of([sys.executable, "-c", TORCH, model])
    version = [line for line in said.splitlines() if line[:1].isdigit()][-1]
    theirs = {SAME.get(name, name): row for name, row in theirs.items()}
    lines = [f"## {model}", "",
             "| row | calls, Tenon | calls, PyTorch | self, Tenon | self, PyTorch | total, Tenon | total, PyTorch | is | why |",
             "|---|---:|---:|---:|---:|---:|---:|---|---|"]
    counts, unexplained = {}, []
    for name in sorted(set(ours) | set(theirs)):
        a, b = ours.get(name, NOTHING), theirs.get(name, NOTHING)
        kind, why = verdict(name, a, b)
        counts[kind] = counts.get(kind, 0) + 1
        if not kind:
            unexplained.append(name)
        lines.append(f"| `{name}` | {a['count']} | {b['count']} | {a['self']} | {b['self']} | {a['total']} | {b['total']} "
                     f"| {kind or '**differs**'} | {why} |")
    sums = [sum(row["self"] for row in rows.values()) for rows in (ours, theirs)]
    said = ", ".join(f"{count} {kind or 'without a reason'}" for kind, count in sorted(counts.items()))
    lines += ["", f"{sum(counts.values())} rows: {said}. Self memory of all rows: {sums[0]} bytes in Tenon, {sums[1]} in "
              "PyTorch.", ""]
    return lines, version, unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", default="lenet,gpt")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    text, all_unexplained, version = [], [], ""
    for model in arguments.models.split(","):
        lines, version, unexplained = table(model, arguments.program)
        text += lines
        all_unexplained += unexplained
    page = "\n".join([f"PyTorch {version}.", ""] + text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(page)
    print(page)
    return 1 if all_unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
