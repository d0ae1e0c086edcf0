#!/usr/bin/env python3
"""Estimates beside PyTorch's own figures: the table of bench/results/estimates_pytorch.md.

  bench/train/estimates_pytorch.py build/release/bin/tenon [--within 2]

`tenon run … --dry-run` makes two training steps on addresses alone. PyTorch makes the same two steps of the same model with
tensors that have no memory (FakeTensorMode): every storage that an operator returns is counted from then until it is freed.
Bytes are as asked for; rounding and the workspace of kernels are in neither figure. Both compute GELU again in backward and
make root-mean-square normalisation of other operators; the last column has what PyTorch takes if GELU keeps its values, and
with the one kernel that it has for that normalisation on a GPU. AdamW (PyTorch's fused one, which has no temporaries), 32-bit floats, no dropout. Exit code 1
where a peak is further from PyTorch's than --within per cent.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import weakref

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Count(TorchDispatchMode):
    """Bytes of the storages that live, and their peaks."""

    def __init__(self):
        super().__init__()
        self.known = weakref.WeakSet()
        self.live = self.peak = 0

    def freed(self, size):
        self.live -= size

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if not isinstance(leaf, torch.Tensor):
                continue
            storage = leaf.untyped_storage()
            if storage in self.known:
                continue
            self.known.add(storage)
            weakref.finalize(storage, self.freed, storage.nbytes())
            self.live += storage.nbytes()
            self.peak = max(self.peak, self.live)
        return result


def attention(q, k, v):
    """The kernel that PyTorch takes for 32-bit floats on a GPU; it keeps a number a query, not the weights."""
    return torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, True)[0]


class GeluLinear(torch.autograd.Function):
    """linear(gelu(x)) that keeps x alone and computes GELU again in backward: models/transformer.cpp."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return F.linear(F.gelu(x, approximate="tanh"), weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        flat = gradient.reshape(-1, weight.shape[0])
        value = F.gelu(x, approximate="tanh")
        of_weight, of_bias = flat.t() @ value.reshape(-1, weight.shape[1]), flat.sum(0)
        of_value = (flat @ weight).view(x.shape)
        return torch.ops.aten.gelu_backward(of_value, x, approximate="tanh"), of_weight, of_bias


class KeepsRows(torch.autograd.Function):
    """What aten::_fused_rms_norm keeps and gives on a GPU; on this device it would be made of other operators."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight, torch.empty(*x.shape[:-1], 1))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, gradient):
        x, weight, _ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight)


class FusedRmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x):
        return KeepsRows.apply(x, self.weight)


class GptBlock(nn.Module):
    def __init__(self, width, heads, again):
        super().__init__()
        self.heads, self.again = heads, again
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(attention(q, k, v).transpose(1, 2).reshape(n, t, c))
        h = self.widen(self.norm2(x))
        if self.again:
            return x + GeluLinear.apply(h, self.narrow.weight, self.narrow.bias)
        return x + self.narrow(F.gelu(h, approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, width, layers, heads, again, vocabulary=50257, positions=1024):
        super().__init__()
        self.symbols, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(torch.empty(positions, width))
        self.blocks = nn.ModuleList(GptBlock(width, heads, again) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.symbols(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.symbols.weight)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, shared, inner, norm):
        super().__init__()
        self.heads, self.shared, self.depth = heads, shared, width // heads
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.norm1, self.norm2 = norm(width), norm(width)
        self.query, self.out = linear(width, width), linear(width, width)
        self.key, self.value = linear(width, shared * self.depth), linear(width, shared * self.depth)
        self.gate, self.up, self.down = linear(width, inner), linear(width, inner), linear(inner, width)

    def forward(self, x, cosine, sine):
        n, t, c = x.shape
        split = lambda y, heads: y.view(n, t, heads, self.depth).transpose(1, 2)

        def rotated(y):
            a, b = y.chunk(2, -1)
            return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)

        def repeated(y):
            each = self.heads // self.shared
            return y.unsqueeze(2).expand(n, self.shared, each, t, self.depth).reshape(n, self.heads, t, self.depth)

        h = self.norm1(x)
        q, k, v = split(self.query(h), self.heads), split(self.key(h), self.shared), split(self.value(h), self.shared)
        y = attention(rotated(q), repeated(rotated(k)), repeated(v))
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, usual, width, layers, heads, shared, inner, tied, context, vocabulary=128256):
        super().__init__()
        norm = (lambda width: nn.RMSNorm(width, 1e-5)) if usual else FusedRmsNorm
        self.symbols = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, shared, inner, norm) for _ in range(layers))
        self.norm = norm(width)
        self.head = None if tied else nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("cosine", torch.empty(context, width // heads // 2))
        self.register_buffer("sine", torch.empty(context, width // heads // 2))

    def forward(self, tokens):
        x = self.symbols(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        x = self.norm(x)
        return F.linear(x, self.symbols.weight) if self.head is None else self.head(x)


CASES = [
    # name, settings of `tenon run`, model, batch, context
    ("gpt2 small", ["model.name=gpt2", "model.preset=small"], lambda usual, _: Gpt2(768, 12, 12, usual), 8, 1024),
    ("gpt2 xl", ["model.name=gpt2", "model.preset=xl"], lambda usual, _: Gpt2(1600, 48, 25, usual), 1, 1024),
    ("gpt2 xl", ["model.name=gpt2", "model.preset=xl"], lambda usual, _: Gpt2(1600, 48, 25, usual), 8, 1024),
    ("llama 1B", ["model.name=llama", "model.preset=1B"],
     lambda usual, context: Llama(usual, 2048, 16, 32, 8, 8192, True, context), 1, 2048),
    ("llama 8B", ["model.name=llama", "model.preset=8B"],
     lambda usual, context: Llama(usual, 4096, 32, 32, 8, 14336, False, context), 1, 2048),
    ("llama 8B", ["model.name=llama", "model.preset=8B"],
     lambda usual, context: Llama(usual, 4096, 32, 32, 8, 14336, False, context), 4, 8192),
]


def by_pytorch(make, usual, batch, context):
    """Parameters, and the peak of two steps. Not `usual`: as the last column says."""
    with FakeTensorMode(), Count() as count:
        model = make(usual, context)
        tokens = torch.empty(batch, context, dtype=torch.int64)
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for _ in range(2):
            F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
        return sum(p.numel() for p in model.parameters()), count.peak


def by_tenon(program, settings, batch, context, folder):
    (folder / "text").write_text("".join(chr(ord("a") + i * i // 3 % 7) for i in range(20 * batch * context)))
    (folder / "experiment.toml").write_text('[data]\nname = "text"\npath = "text"\n[train]\noptimizer = "adamw"\n')
    command = [program, "run", "experiment.toml", *settings, f"model.context={context}", f"train.batch_size={batch}",
               f"data.limit={batch}", "data.test_limit=1", "train.test_batch_size=1", "train.epochs=2", "--dry-run",
               "--format", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: code {done.returncode}\n{done.stderr}")
    row = json.loads(done.stdout)["rows"][0]
    return row["parameters"], row["estimated_peak_requested_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--within", type=float, default=2.0, help="per cent")
    asked = parser.parse_args()
    program, far = asked.program.resolve(), []
    print(f"PyTorch {torch.__version__}\n")
    print("| model | batch x context | parameters | Tenon | PyTorch | off by | PyTorch otherwise |\n"
          "|---|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, settings, make, batch, context in CASES:
            ours = by_tenon(program, settings, batch, context, pathlib.Path(folder))
            theirs = by_pytorch(make, True, batch, context)
            otherwise = by_pytorch(make, False, batch, context)[1]
            off = 100 * (ours[1] / theirs[1] - 1)
            if ours[0] != theirs[0] or abs(off) > asked.within:
                far.append(f"{name}, {batch} x {context}: {ours} by Tenon, {theirs} by PyTorch")
            print(f"| {name} | {batch} x {context:,} | {ours[0]:,} | {ours[1] / 2**30:.2f} GiB | {theirs[1] / 2**30:.2f} GiB "
                  f"| {off:+.2f} % | {otherwise / 2**30:.2f} GiB |", flush=True)
    for line in far:
        print(f"beyond {asked.within} %: {line}")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
