#!/usr/bin/env python3
"""Times PyTorch on the rows of kernels_bench, and beside them the ratio of a results file:

    kernels_bench --benchmark_format=json --benchmark_min_time=0.003 --benchmark_repetitions=25 > tenon.json
    peer_kernels.py tenon.json
"""
import json
import os
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(int(os.environ.get("TENON_BENCH_THREADS", "1")))
torch.manual_seed(0)


# With one thread the thread's own time, which other programs on the machine do not inflate; so does Google Benchmark.
CLOCK = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter


def best_of(work, budget=0.25):
    """Microseconds of the fastest of several batches."""
    work()
    start = CLOCK()
    work()
    count = max(1, int(0.01 / max(1e-7, CLOCK() - start)))
    best, end = float("inf"), time.perf_counter() + budget
    while time.perf_counter() < end:
        start = CLOCK()
        for _ in range(count):
            work()
        best = min(best, (CLOCK() - start) / count)
    return best * 1e6


def function_rows():
    x, z, y = (torch.rand(65536) * 0.98 + 0.01 for _ in range(3))
    named = {"log_sigmoid": lambda x, out: torch._C._nn.log_sigmoid(x, out=out), "mish": lambda x, out: F.mish(x),
             "erfinv": torch.special.erfinv, "digamma": torch.special.digamma}
    for name in ("sin cos tan asin acos atan sinh cosh asinh atanh exp exp2 log log2 log10 log1p expm1 erf erfc erfinv lgamma "
                 "digamma sigmoid log_sigmoid mish sinc").split():
        call = named.get(name) or getattr(torch, name)
        yield f"function/{name}", lambda call=call: call(x, out=y)
    for name in "pow atan2 hypot fmod remainder floor_divide logaddexp".split():
        call = named.get(name) or getattr(torch, name)
        yield f"function/{name}", lambda call=call: call(x, z, out=y)


def rows():
    yield from function_rows()
    one = torch.randn(1)
    yield "add/1", lambda: torch.add(one, one)
    for label, sizes in (("16K", (128, 128)), ("1M", (1024, 1024))):
        x, z, y = torch.randn(sizes), torch.randn(sizes), torch.empty(sizes)
        bias, w, b = torch.randn(sizes[1]), torch.randn(sizes[1]), torch.randn(sizes[1])
        mean, rstd = torch.randn(sizes[0], 1), torch.rand(sizes[0], 1)
        p, m, v = torch.randn(sizes), torch.zeros(sizes), torch.zeros(sizes)
        steps = torch.tensor(5.0)
        t = torch.randn(sizes[1], sizes[0]).t()
        yield f"add/{label}", lambda: torch.add(x, z, out=y)
        yield f"add_bias/{label}", lambda: torch.add(x, bias, out=y)
        yield f"mul_scalar/{label}", lambda: torch.mul(x, 0.5, out=y)
        yield f"relu/{label}", lambda: torch.clamp_min(x, 0, out=y)
        yield f"exp/{label}", lambda: torch.exp(x, out=y)
        yield f"gelu/{label}", lambda: torch._C._nn.gelu(x, out=y)
        yield f"gelu_backward/{label}", lambda: torch.ops.aten.gelu_backward(z, x)
        yield f"tanh/{label}", lambda: torch.tanh(x, out=y)
        yield f"sum/{label}", lambda: x.sum()
        yield f"sum_rows/{label}", lambda: x.sum(0)
        yield f"sum_columns/{label}", lambda: x.sum(1)
        yield f"transpose/{label}", lambda: y.copy_(t)
        yield f"softmax/{label}", lambda: torch.softmax(x, 1, out=y)
        yield f"softmax_backward/{label}", lambda: torch.ops.aten._softmax_backward_data(z, x, 1, torch.float32)
        yield f"layer_norm/{label}", lambda: torch.ops.aten.native_layer_norm(x, [sizes[1]], w, b, 1e-5)
        yield f"layer_norm_backward/{label}", lambda: torch.ops.aten.native_layer_norm_backward(
            z, x, [sizes[1]], mean, rstd, w, b, [True, True, True])
        yield f"normal/{label}", lambda: y.normal_()
        yield f"bernoulli/{label}", lambda: y.bernoulli_(0.9)
        yield f"adam/{label}", lambda: torch._fused_adam_(
            [p], [z], [m], [v], [], [steps], lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False,
            maximize=False)
        yield f"sgd/{label}", lambda: torch._fused_sgd_(
            [p], [z], [m], weight_decay=0.0, momentum=0.9, lr=0.01, dampening=0.0, nesterov=False, maximize=False,
            is_first_step=False)
    for m_, k, n in ((128, 784, 128), (128, 128, 10), (512, 384, 1536), (1024, 1024, 1024)):
        a, w2, b2 = torch.randn(m_, k), torch.randn(n, k), torch.randn(n)
        at, b3 = torch.randn(k, m_).t(), torch.randn(k, n)
        yield f"linear/{m_}x{k}x{n}", lambda: F.linear(a, w2, b2)
        yield f"matmul_tn/{m_}x{k}x{n}", lambda: at @ b3
    q, k2 = torch.randn(48, 128, 64), torch.randn(48, 128, 64)
    yield "bmm/48x128x64x128", lambda: torch.bmm(q, k2.transpose(1, 2))
    for label, xs, ws, stride, padding in (
            ("lenet1", (128, 1, 28, 28), (6, 1, 5, 5), 1, 2), ("lenet2", (128, 6, 14, 14), (16, 6, 5, 5), 1, 0),
            ("resnet_stem", (16, 3, 64, 64), (64, 3, 7, 7), 2, 3), ("resnet_64", (16, 64, 16, 16), (64, 64, 3, 3), 1, 1),
            ("resnet_down", (16, 64, 16, 16), (128, 64, 3, 3), 2, 1), ("resnet_512", (16, 512, 2, 2), (512, 512, 3, 3), 1, 1)):
        x, w, bias = torch.randn(xs), torch.randn(ws), torch.randn(ws[0])
        dy = torch.randn_like(F.conv2d(x, w, bias, stride, padding))

        def backward(mask):
            return torch.ops.aten.convolution_backward(dy, x, w, [ws[0]], [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1,
                                                       mask)
        yield f"conv_forward/{label}", lambda: F.conv2d(x, w, bias, stride, padding)
        yield f"conv_backward_input/{label}", lambda: backward([True, False, False])
        yield f"conv_backward_weight/{label}", lambda: backward([False, True, False])
    x, dy = torch.randn(16, 64, 32, 32), torch.randn(16, 64, 32, 32)
    w, b, rm, rv = torch.randn(64), torch.randn(64), torch.zeros(64), torch.ones(64)
    yield "max_pool", lambda: torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    yield "batch_norm", lambda: torch.ops.aten.native_batch_norm(x, w, b, rm, rv, True, 0.1, 1e-5)
    yield "batch_norm_backward", lambda: torch.ops.aten.native_batch_norm_backward(
        dy, x, w, rm, rv, rm, rv, True, 1e-5, [True, True, True])


TIME = "cpu_time" if torch.get_num_threads() == 1 else "real_time"


def main():
    ours = {}
    if len(sys.argv) > 1:
        with open(sys.argv[1]) as file:
            for row in json.load(file)["benchmarks"]:
                if row.get("run_type") == "aggregate":
                    continue
                ours[row["name"]] = min(row[TIME], ours.get(row["name"], float("inf")))
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} thread(s), microseconds")
    print(f"{'row':36} {'peer':>10} {'tenon':>10} {'ratio':>6}")
    with torch.no_grad():
        for name, work in rows():
            if only not in name:
                continue
            peer = best_of(work)
            mine = ours.get(name)
            print(f"{name:36} {peer:10.2f} " + (f"{mine:10.2f} {mine / peer:6.2f}" if mine else ""), flush=True)


if __name__ == "__main__":
    main()
