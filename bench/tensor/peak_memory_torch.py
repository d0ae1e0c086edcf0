#!/usr/bin/env python3
"""The five programs of peak_memory.cpp under PyTorch: live bytes before, at the peak, and after, on the CPU.

Every allocation and release of PyTorch's CPU allocator is recorded by its profiler, so the figures are exact. Prints
the lines that peak_memory prints: program,before,peak,after. `--events` prints each allocation and release instead.
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile


def mlp():
    first, second, third = nn.Linear(784, 256), nn.Linear(256, 256), nn.Linear(256, 10)
    x, target = torch.randn(64, 784), torch.zeros(64, dtype=torch.int64)

    def step():
        h = first(x).relu()
        h = second(h).relu()
        h = third(h)
        F.cross_entropy(h, target).backward()

    return step, [x, target, *params(first, second, third)]


def convnet():
    first, second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    first_norm, second_norm = nn.BatchNorm2d(16), nn.BatchNorm2d(32)
    head = nn.Linear(32 * 8 * 8, 10)
    x, target = torch.randn(8, 3, 32, 32), torch.zeros(8, dtype=torch.int64)

    def step():
        h = F.max_pool2d(first_norm(first(x)).relu(), 2)
        h = F.max_pool2d(second_norm(second(h)).relu(), 2)
        h = head(h.flatten(1))
        F.cross_entropy(h, target).backward()

    return step, [x, target, *params(first, second, first_norm, second_norm, head)]


def attention():
    norm1, norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
    qkv, out, up, down = nn.Linear(128, 384), nn.Linear(128, 128), nn.Linear(128, 512), nn.Linear(512, 128)
    x = torch.randn(4, 64, 128)

    def step():
        parts = qkv(norm1(x)).view(4, 64, 3, 4, 32).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * 0.17677669529663687, -1)
        h = x + out(torch.matmul(weights, v).transpose(1, 2).reshape(4, 64, 128))
        h = h + down(F.gelu(up(norm2(h))))
        h.square().mean().backward()

    return step, [x, *params(norm1, norm2, qkv, out, up, down)]


def views_in_place():
    w, x = torch.randn(256, 256, requires_grad=True), torch.randn(256, 256)

    def step():
        y = x * w
        y.narrow(1, 0, 128).mul_(2)
        y.select(0, 3).zero_()
        y.add_(1)
        z = y.transpose(0, 1).sin()
        z.mul_(0.5)
        z = z + 1
        z = z.tanh()
        (z.reshape(-1) * 3).sum().backward()

    return step, [w, x]


def embedding():
    table, head = nn.Embedding(1000, 64), nn.Linear(64, 1000)
    tokens, target = torch.arange(512).view(32, 16), torch.zeros(32, dtype=torch.int64)

    def step():
        F.cross_entropy(head(table(tokens).mean(1)), target).backward()

    return step, [tokens, target, *params(table, head)]


def params(*modules):
    return [t for m in modules for t in [*m.parameters(), *m.buffers()]]


def main():
    torch.set_num_threads(1)
    for make in (mlp, convnet, attention, views_in_place, embedding):
        torch.manual_seed(1)
        step, held = make()
        before = sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in held}.values())
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
            step()
        live = peak = before
        for event in recorded.profiler.kineto_results.events():
            if event.name() == "[memory]":
                live += event.nbytes()
                peak = max(peak, live)
                if "--events" in sys.argv:
                    print(make.__name__, event.nbytes(), live)
        print(f"{make.__name__},{before},{peak},{live}")


if __name__ == "__main__":
    main()
