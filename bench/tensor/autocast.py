#!/usr/bin/env python3
"""Asks an installed PyTorch what autocast makes of each operator: tests/ops/autocast_dtypes.inl.

  python bench/tensor/autocast.py > tests/ops/autocast_dtypes.inl     # the table that tests/ops/autocast_test.cpp holds
  python bench/tensor/autocast.py --lists                             # operators of PyTorch's lists without a row here

Every operator is called under autocast on three kinds of operands: all in float32, all in the lower dtype (bfloat16 on the
cpu, float16 on accelerators), and the first in float32 beside others in the lower one. Recorded is the dtype of its result:
F float32, L the lower one, o another, - where PyTorch refuses the call. Accelerators are asked through tensors that only
pretend to be on "cuda", so no GPU is needed. The test makes the same calls in Tenon; operators that are in no list stand
beside them, since there the operators that they are made of could cast.
"""
import argparse
import warnings

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

warnings.simplefilter("ignore")


class Operands:
    """first: what stands first in calls; other: what stands behind it. The same sizes as in autocast_test.cpp."""

    def __init__(self, device, first, other):
        def make(dtype, *sizes):
            return torch.full(sizes, 0.5, dtype=dtype, device=device)
        self.x, self.v, self.s = make(first, 3, 4), make(first, 4), make(first, 4, 4)
        self.b, self.seq, self.img, self.vol = (make(first, *sizes) for sizes in
                                                ((2, 3, 4), (2, 3, 8), (2, 3, 8, 8), (2, 3, 8, 8, 8)))
        self.p, self.q = make(first, 5), make(first, 3, 5)
        self.x2, self.x3, self.y, self.v2, self.u = (make(other, *sizes) for sizes in
                                                     ((3, 4), (3, 4), (4, 3), (4,), (3,)))
        self.c, self.b2, self.pic2 = make(other, 2, 4, 3), make(other, 2, 3, 4), make(other, 2, 3, 8, 8)
        self.w1, self.w2, self.w3 = make(other, 5, 3, 3), make(other, 5, 3, 3, 3), make(other, 5, 3, 3, 3, 3)
        self.t1, self.t2, self.t3 = make(other, 3, 5, 3), make(other, 3, 5, 3, 3), make(other, 3, 5, 3, 3, 3)
        self.grid, self.rows = make(other, 2, 4, 4, 2), make(other, 3, 4)
        self.three, self.one, self.cube, self.gates, self.hidden = (make(other, *sizes) for sizes in
                                                              ((3,), (1,), (2, 4, 4), (16, 4), (3, 4)))
        self.gates3, self.square, self.wide = make(other, 12, 4), make(other, 4, 4), make(other, 3, 8)
        self.classes = torch.zeros(3, dtype=torch.int64, device=device)
        self.table = torch.zeros(3, 4, dtype=torch.int64, device=device)
        self.sign = make(torch.float32, 3)
        self.index = torch.zeros(1, dtype=torch.int64, device=device)


def rows():
    """name -> call. The names of the test."""
    pool = lambda f: lambda o: f(o)[0]
    table = {
        "conv1d": lambda o: F.conv1d(o.seq, o.w1), "conv2d": lambda o: F.conv2d(o.img, o.w2),
        "conv3d": lambda o: F.conv3d(o.vol, o.w3), "conv2d_same": lambda o: F.conv2d(o.img, o.w2, padding="same"),
        "conv_transpose1d": lambda o: F.conv_transpose1d(o.seq, o.t1),
        "conv_transpose2d": lambda o: F.conv_transpose2d(o.img, o.t2),
        "conv_transpose3d": lambda o: F.conv_transpose3d(o.vol, o.t3),
        "linear": lambda o: F.linear(o.x, o.x2), "matmul": lambda o: torch.matmul(o.x, o.y),
        "matmul_batched": lambda o: torch.matmul(o.b, o.y), "mm": lambda o: torch.mm(o.x, o.y),
        "bmm": lambda o: torch.bmm(o.b, o.c), "mv": lambda o: torch.mv(o.x, o.v2),
        "addmm": lambda o: torch.addmm(o.x, o.x2, o.square), "addbmm": lambda o: torch.addbmm(o.x, o.b2, o.cube),
        "baddbmm": lambda o: torch.baddbmm(o.b, o.b2, o.cube),
        "addmv": lambda o: torch.addmv(o.v, o.square, o.v2), "addr": lambda o: torch.addr(o.x, o.u, o.v2),
        "vecdot": lambda o: torch.linalg.vecdot(o.x, o.x2), "einsum": lambda o: torch.einsum("ij,jk->ik", o.x, o.y),
        "chain_matmul": lambda o: torch.chain_matmul(o.x, o.y, o.x2),
        "multi_dot": lambda o: torch.linalg.multi_dot([o.x, o.y, o.x2]),
        "scaled_dot_product_attention": lambda o: F.scaled_dot_product_attention(o.b, o.b2, o.b2),
        "prelu": lambda o: F.prelu(o.x, o.one),
        "lstm_cell": pool(lambda o: torch.lstm_cell(o.x, (o.hidden, o.hidden), o.gates, o.gates)),
        "gru_cell": lambda o: torch.gru_cell(o.x, o.hidden, o.gates3, o.gates3),
        "rnn_tanh_cell": lambda o: torch.rnn_tanh_cell(o.x, o.hidden, o.square, o.square),
        "rnn_relu_cell": lambda o: torch.rnn_relu_cell(o.x, o.hidden, o.square, o.square),
        "dot": lambda o: torch.dot(o.v, o.v2), "vdot": lambda o: torch.vdot(o.v, o.v2),
        "bilinear": lambda o: F.bilinear(o.x, o.x2, o.cube), "cross": lambda o: torch.linalg.cross(o.x.t(), o.x2.t()),
        "tensordot": lambda o: torch.tensordot(o.x, o.y, 1), "inner": lambda o: torch.inner(o.x, o.x2),
        "outer": lambda o: torch.outer(o.v, o.v2), "kron": lambda o: torch.kron(o.x, o.x2),
        "addcdiv": lambda o: torch.addcdiv(o.x, o.x2, o.x3), "addcmul": lambda o: torch.addcmul(o.x, o.x2, o.x3),
        "atan2": lambda o: torch.atan2(o.x, o.x2),
        "index_put": lambda o: o.x.index_put((o.index,), o.v2), "index_copy": lambda o: o.x.index_copy(0, o.index, o.rows[:1]),
        "scatter_add": lambda o: o.x.scatter_add(0, o.table, o.x2),
        "cat": lambda o: torch.cat([o.x, o.x2]), "stack": lambda o: torch.stack([o.x, o.x2]),
        "grid_sampler": lambda o: F.grid_sample(o.img, o.grid, align_corners=False),
        "avg_pool2d": lambda o: F.avg_pool2d(o.img, 2), "avg_pool3d": lambda o: F.avg_pool3d(o.vol, 2),
        "adaptive_avg_pool2d": lambda o: F.adaptive_avg_pool2d(o.img, 2),
        "adaptive_avg_pool3d": lambda o: F.adaptive_avg_pool3d(o.vol, 2),
        "adaptive_max_pool2d": lambda o: F.adaptive_max_pool2d(o.img, 2),
        "adaptive_max_pool3d": lambda o: F.adaptive_max_pool3d(o.vol, 2),
        "max_pool2d": lambda o: F.max_pool2d(o.img, 2), "max_pool3d": lambda o: F.max_pool3d(o.vol, 2),
        "reflection_pad1d": lambda o: F.pad(o.seq, (1, 1), "reflect"), "reflection_pad2d": lambda o: F.pad(o.img, (1, 1, 1, 1), "reflect"),
        "reflection_pad3d": lambda o: F.pad(o.vol, (1, 1, 1, 1, 1, 1), "reflect"),
        "replication_pad2d": lambda o: F.pad(o.img, (1, 1, 1, 1), "replicate"),
        "replication_pad3d": lambda o: F.pad(o.vol, (1, 1, 1, 1, 1, 1), "replicate"),
        "constant_pad": lambda o: F.pad(o.img, (1, 1)), "circular_pad": lambda o: F.pad(o.img, (1, 1, 1, 1), "circular"),
        "upsample_nearest": lambda o: F.interpolate(o.img, scale_factor=2),
        "upsample_bilinear": lambda o: F.interpolate(o.img, scale_factor=2, mode="bilinear"),
        "upsample_bicubic": lambda o: F.interpolate(o.img, scale_factor=2, mode="bicubic"),
        "quantile": lambda o: torch.quantile(o.x, 0.5), "nanquantile": lambda o: torch.nanquantile(o.x, 0.5),
        "trace": lambda o: torch.trace(o.s),
        "binary_cross_entropy": lambda o: F.binary_cross_entropy(o.x, o.x2),
        "binary_cross_entropy_with_logits": lambda o: F.binary_cross_entropy_with_logits(o.x, o.x2),
        "cosine_embedding_loss": lambda o: F.cosine_embedding_loss(o.x, o.x2, o.sign),
        "cross_entropy_loss": lambda o: F.cross_entropy(o.q, o.classes), "nll_loss": lambda o: F.nll_loss(o.q, o.classes),
        "hinge_embedding_loss": lambda o: F.hinge_embedding_loss(o.x, o.x2), "huber_loss": lambda o: F.huber_loss(o.x, o.x2),
        "kl_div": lambda o: F.kl_div(o.x, o.x2, reduction="batchmean"), "l1_loss": lambda o: F.l1_loss(o.x, o.x2),
        "margin_ranking_loss": lambda o: F.margin_ranking_loss(o.x, o.x2, o.x3), "mse_loss": lambda o: F.mse_loss(o.x, o.x2),
        "multi_margin_loss": lambda o: F.multi_margin_loss(o.q, o.classes),
        "multilabel_margin_loss": lambda o: F.multilabel_margin_loss(o.x, o.table),
        "poisson_nll_loss": lambda o: F.poisson_nll_loss(o.x, o.x2), "smooth_l1_loss": lambda o: F.smooth_l1_loss(o.x, o.x2),
        "soft_margin_loss": lambda o: F.soft_margin_loss(o.x, o.x2),
        "triplet_margin_loss": lambda o: F.triplet_margin_loss(o.x, o.x2, o.x3),
        "cdist": lambda o: torch.cdist(o.x, o.x2), "pdist": lambda o: F.pdist(o.x), "dist": lambda o: torch.dist(o.x, o.x2),
        "cosine_similarity": lambda o: F.cosine_similarity(o.x, o.x2), "renorm": lambda o: torch.renorm(o.x, 2, 0, 1),
        "logsumexp": lambda o: torch.logsumexp(o.x, 1), "norm": lambda o: o.x.norm(), "norm_dim": lambda o: o.x.norm(2, 1),
        "vector_norm": lambda o: torch.linalg.vector_norm(o.x), "matrix_norm": lambda o: torch.linalg.matrix_norm(o.x),
        "layer_norm": lambda o: F.layer_norm(o.x, (4,), o.v2, o.v2), "group_norm": lambda o: F.group_norm(o.img, 3, o.three, o.three),
        "rms_norm": lambda o: F.rms_norm(o.x, (4,), o.v2),
        "batch_norm": lambda o: F.batch_norm(o.img, o.sign.clone(), o.sign.clone(), o.sign, o.sign, True),
        "sum": lambda o: o.x.sum(), "sum_dim": lambda o: o.x.sum(1), "prod": lambda o: o.x.prod(), "prod_dim": lambda o: o.x.prod(1),
        "cumsum": lambda o: o.x.cumsum(1), "cumprod": lambda o: o.x.cumprod(1), "mean": lambda o: o.x.mean(),
        "var": lambda o: o.x.var(), "std": lambda o: o.x.std(), "amax": lambda o: o.x.amax(1), "nansum": lambda o: o.x.nansum(),
        "softmax": lambda o: o.x.softmax(1), "log_softmax": lambda o: o.x.log_softmax(1), "softmin": lambda o: F.softmin(o.x, 1),
        "logcumsumexp": lambda o: o.x.logcumsumexp(1), "pow_number": lambda o: o.x.pow(3), "pow_half": lambda o: o.x.pow(0.5),
        "pow_tensor": lambda o: o.x.pow(o.x2), "pow_base": lambda o: torch.pow(2.0, o.x),
        "add": lambda o: o.x + o.x2, "mul": lambda o: o.x * o.x2, "div": lambda o: o.x / o.x2, "maximum": lambda o: torch.maximum(o.x, o.x2),
        "where": lambda o: torch.where(o.table > 0, o.x, o.x2), "lerp": lambda o: torch.lerp(o.x, o.x, 0.5),
        "logaddexp": lambda o: torch.logaddexp(o.x, o.x2), "glu": lambda o: F.glu(o.x), "clamp": lambda o: o.x.clamp(0, 1),
        "masked_fill": lambda o: o.x.masked_fill(o.table > 0, 1.0), "index_select": lambda o: o.x.index_select(0, o.index),
        "embedding": lambda o: F.embedding(o.classes, o.x), "dropout": lambda o: F.dropout(o.x, 0.5),
        "flip": lambda o: o.x.flip(0), "tril": lambda o: o.x.tril(), "repeat": lambda o: o.x.repeat(2, 1),
    }
    for name in ("acos asin cosh erfinv exp expm1 log log10 log1p log2 reciprocal rsqrt sinh tan sqrt sin cos tanh sigmoid abs "
                 "neg relu erf square atan atanh exp2 floor sign digamma lgamma").split():
        table[name] = lambda o, name=name: getattr(torch, name)(o.x)
    for name in "softplus gelu silu mish elu selu celu leaky_relu logsigmoid hardtanh softsign hardswish".split():
        table[name] = lambda o, name=name: getattr(F, name)(o.x)
    return table


def dtypes_under(device, lower, call):
    letters = {torch.float32: "F", lower: "L"}
    found = ""
    for first, other in ((torch.float32, torch.float32), (lower, lower), (torch.float32, lower)):
        operands = Operands(device, first, other)
        torch.set_autocast_dtype(device, lower)
        torch.set_autocast_enabled(device, True)
        try:
            found += letters.get(call(operands).dtype, "o")
        except Exception:
            found += "-"
        finally:
            torch.set_autocast_enabled(device, False)
    return found


# Mixed operands that a kernel of CUDA refuses, and a pretended device does not.
CHECKED_BY_THE_KERNEL = {"index_copy"}

# What this table has no row for: other names of a row's operator, and what Tenon does not have.
OTHER_NAMES = {"_convolution", "_convolution.deprecated", "convolution", "conv1d.padding", "conv2d.padding", "conv3d.padding",
               "linalg_vecdot", "linalg_multi_dot", "linalg_vector_norm", "linalg_matrix_norm", "native_layer_norm",
               "nll_loss2d", "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d"}


def lists():
    names = torch._C._dispatch_get_all_op_names()
    known = set(rows()) | OTHER_NAMES
    for key in ("AutocastCPU", "AutocastCUDA"):
        listed = sorted(n.removeprefix("aten::") for n in names if torch._C._dispatch_has_kernel_for_dispatch_key(n, key))
        missing = [n for n in listed if n not in known and n.split(".")[0] not in known]
        print(f"{key}: {len(listed)} operators, without a row: {' '.join(missing)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", action="store_true")
    if parser.parse_args().lists:
        lists()
        return
    print(f"// Written by bench/tensor/autocast.py from torch {torch.__version__.split('+')[0]}; the letters are explained there.")
    print("// AUTOCAST_DTYPES(operator, on the cpu, on accelerators)")
    for name, call in rows().items():
        cpu = dtypes_under("cpu", torch.bfloat16, call)
        with FakeTensorMode():
            accelerator = dtypes_under("cuda", torch.float16, call)
        if name in CHECKED_BY_THE_KERNEL:
            accelerator = accelerator[:2] + "-"
        print(f'AUTOCAST_DTYPES({name}, "{cpu}", "{accelerator}")')
    print("#undef AUTOCAST_DTYPES")


main()
