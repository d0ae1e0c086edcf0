#!/usr/bin/env python3
"""Writes what PyTorch gives, for the tests of this folder to compare with: make.py in a Python that can import torch.

One file for each test beside it. Inputs stand in the files too, so that no random number has to be drawn twice.
"""
import itertools
import json
import pathlib
import random
import re

import torch

FOLDER = pathlib.Path(__file__).parent
STEPS = 20


def rounded(value):
    """Nested lists of numbers with 12 digits; what JSON lacks as words."""
    if isinstance(value, torch.Tensor):
        value = value.detach().tolist()
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    if isinstance(value, float):
        if value != value:
            return "nan"
        if value in (float("inf"), float("-inf")):
            return "inf" if value > 0 else "-inf"
        return float(f"{value:.12g}")
    return value


def write(name, content):
    lines = ",\n".join(f" {json.dumps(key)}: {body(part)}" for key, part in content.items())
    (FOLDER / f"{name}.json").write_text("{\n" + lines + "\n}\n")


def body(part):
    """A list of cases has a line for each."""
    if isinstance(part, list) and part and isinstance(part[0], dict):
        return "[\n" + ",\n".join("  " + json.dumps(rounded_case(case)) for case in part) + "\n ]"
    return json.dumps(rounded(part))


def rounded_case(case):
    return {key: part if isinstance(part, (dict, str)) else rounded(part) for key, part in case.items()}


def products(**choices):
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices.keys(), values))


def optimizers():
    draw = random.Random(83)
    start = [round(draw.uniform(-2, 2), 3) for _ in range(3)]
    gradients = [[round(draw.uniform(-2, 2), 3) for _ in start] for _ in range(STEPS)]
    gradients[4][1] = 0.0
    kinds = {
        "SGD": products(lr=[0.1], momentum=[0, 0.9], dampening=[0, 0.3], weight_decay=[0, 0.05], nesterov=[False]),
        "SGD nesterov": products(lr=[0.1], momentum=[0.9], dampening=[0], weight_decay=[0, 0.05], nesterov=[True]),
        "Adam": products(lr=[0.1], betas=[(0.9, 0.999), (0.5, 0.8)], eps=[1e-8, 1e-3], weight_decay=[0, 0.05],
                         amsgrad=[False, True]),
        "AdamW": products(lr=[0.1], betas=[(0.9, 0.999), (0.5, 0.8)], eps=[1e-8], weight_decay=[0, 0.05],
                          amsgrad=[False, True]),
        "Adagrad": products(lr=[0.1], lr_decay=[0, 0.1], weight_decay=[0, 0.05], initial_accumulator_value=[0, 0.5],
                            eps=[1e-10, 1e-3]),
        "RMSprop": products(lr=[0.05], alpha=[0.99, 0.8], eps=[1e-8, 1e-3], weight_decay=[0, 0.05], momentum=[0, 0.7],
                            centered=[False, True]),
    }
    cases = []
    for name, choices in kinds.items():
        for options in choices:
            x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
            optimizer = getattr(torch.optim, name.split()[0])([x], **options)
            values = []
            for gradient in gradients:
                x.grad = torch.tensor(gradient, dtype=torch.float64)
                optimizer.step()
                values.append(x.detach().tolist())
            cases.append({"optimizer": name.split()[0], "options": options,
                          "values": [values[step] for step in (0, 1, 4, 9, STEPS - 1)]})
    valley = []
    for options in products(lr=[1, 0.05], max_iter=[4, 20], history_size=[2, 100], line_search_fn=[None, "strong_wolfe"]):
        if options["lr"] == 1 and options["line_search_fn"] is None:
            continue  # it leaves the valley
        x = torch.tensor([-1.2, 1.0, 0.4], dtype=torch.float64, requires_grad=True)
        # Python's line search stops within max_eval, libtorch's after it: high enough, it is the same.
        optimizer = torch.optim.LBFGS([x], max_eval=500, **options)

        def closure():
            optimizer.zero_grad()
            loss = ((1 - x[:-1]) ** 2 + 10 * (x[1:] - x[:-1] ** 2) ** 2).sum()
            loss.backward()
            return loss

        values = []
        for _ in range(3):
            optimizer.step(closure)
            values.append(x.detach().tolist())
        valley.append({"options": options, "values": values})
    write("optimizers", {"torch": torch.__version__, "start": start, "gradients": gradients,
                         "steps": [1, 2, 5, 10, STEPS], "cases": cases, "lbfgs": valley})


def schedulers():
    kinds = {
        "StepLR": products(step_size=[1, 3], gamma=[0.1, 0.5]),
        "MultiStepLR": products(milestones=[[2, 5], [1, 2, 3], [4, 4]], gamma=[0.1, 0.5]),
        "CosineAnnealingLR": products(T_max=[5, 20], eta_min=[0, 0.1]),
        "LinearLR": products(start_factor=[0.25, 1.0], end_factor=[1.0, 0.5], total_iters=[1, 7]),
        "OneCycleLR": products(max_lr=[1.0, 0.3], total_steps=[21], pct_start=[0.3, 0.5], div_factor=[25, 4],
                               final_div_factor=[1e4, 10]),
    }
    draw = random.Random(89)
    cases = []
    for name, choices in kinds.items():
        for options in choices:
            optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
            extra = {"cycle_momentum": False} if name == "OneCycleLR" else {}
            schedule = getattr(torch.optim.lr_scheduler, name)(optimizer, **options, **extra)
            rates = [optimizer.param_groups[0]["lr"]]
            for _ in range(STEPS):
                optimizer.step()
                schedule.step()
                rates.append(optimizer.param_groups[0]["lr"])
            cases.append({"scheduler": name, "options": options, "rates": rates})
    plateaus = []
    # No two lie a threshold apart: libtorch, whose metrics are floats, would decide otherwise.
    metrics = [round(3 * 0.8 ** step + draw.choice([0.013, 0, 0.417, -0.109]), 4) for step in range(STEPS)]
    for options in products(mode=["min", "max"], factor=[0.5, 0.1], patience=[0, 2], threshold=[1e-4, 0.2],
                            threshold_mode=["rel", "abs"], cooldown=[0, 2], min_lr=[0, 0.15], eps=[1e-8, 0.1]):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for metric in metrics:
            schedule.step(metric)
            rates.append(optimizer.param_groups[0]["lr"])
        plateaus.append({"options": options, "rates": rates})
    plateaus = [case for index, case in enumerate(plateaus) if index % 3 == 0]
    write("schedulers", {"torch": torch.__version__, "cases": cases, "metrics": metrics, "plateaus": plateaus})


def losses():
    F = torch.nn.functional
    draw = random.Random(97)

    def numbers(*sizes, low=-2.0, high=2.0):
        count = 1
        for size in sizes:
            count *= size
        return torch.tensor([round(draw.uniform(low, high), 3) for _ in range(count)],
                            dtype=torch.float64).reshape(sizes)

    scores, other, third = numbers(4, 3), numbers(4, 3), numbers(4, 3)
    image = numbers(2, 3, 2)
    shares = numbers(4, 3, low=0.05, high=0.95)
    logs = numbers(4, 3).log_softmax(1)
    target_shares = numbers(4, 3, low=0, high=1).softmax(1)
    classes = torch.tensor([2, 0, 1, 1])
    classes_of_image = torch.tensor([[2, 0], [1, 2]])
    signs = torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)
    signs_of_each = torch.tensor([[1.0, -1, 1]] * 4, dtype=torch.float64)
    hot = torch.tensor([[1.0, 0, 1], [0, 0, 1], [1, 1, 1], [0, 0, 0]], dtype=torch.float64)
    labels = torch.tensor([[2, 0, -1], [1, -1, 0], [0, 1, 2], [-1, 0, 1]])
    weight = torch.tensor([0.5, 2.0, 1.25], dtype=torch.float64)
    # The two kinks of each: where the square turns into a line, and at the target.
    steps = torch.tensor([[0.0, 0.5, 1.0], [1.5, -0.5, -1.0], [2.0, -2.0, 0.25], [0.0, 3.0, -3.0]], dtype=torch.float64)
    level = torch.zeros(4, 3, dtype=torch.float64)
    counts = numbers(4, 3, low=0.2, high=4)
    tensors = {"scores": scores, "counts": counts, "other": other, "third": third, "image": image, "shares": shares, "logs": logs,
               "target_shares": target_shares, "classes": classes, "classes_of_image": classes_of_image,
               "signs": signs, "signs_of_each": signs_of_each, "hot": hot, "labels": labels, "weight": weight,
               "steps": steps, "level": level}
    reductions = ["none", "mean", "sum"]
    plans = [
        ("l1_loss", ["scores", "other"], products(reduction=reductions)),
        ("l1_loss", ["level", "level"], products(reduction=["sum"])),
        ("mse_loss", ["scores", "other"], products(reduction=reductions)),
        ("smooth_l1_loss", ["scores", "other"], products(reduction=reductions, beta=[1.0, 0.3])),
        ("smooth_l1_loss", ["steps", "level"], products(reduction=["none"], beta=[1.0, 0.5, 0.0])),
        ("huber_loss", ["scores", "other"], products(reduction=reductions, delta=[1.0, 0.3])),
        ("huber_loss", ["steps", "level"], products(reduction=["none"], delta=[1.0, 0.5])),
        ("kl_div", ["logs", "target_shares"], products(reduction=reductions + ["batchmean"], log_target=[False])),
        ("kl_div", ["logs", "other"], products(reduction=reductions + ["batchmean"], log_target=[True])),
        ("kl_div", ["logs", "hot"], products(reduction=["none"], log_target=[False])),
        ("nll_loss", ["logs", "classes"], products(reduction=reductions, weight=[None, "weight"], ignore_index=[-100, 1])),
        ("nll_loss", ["image", "classes_of_image"],
         products(reduction=reductions, weight=[None, "weight"], ignore_index=[-100, 2])),
        ("cross_entropy", ["scores", "classes"],
         products(reduction=reductions, weight=[None, "weight"], ignore_index=[-100, 1], label_smoothing=[0.0, 0.2])),
        ("cross_entropy", ["image", "classes_of_image"],
         products(reduction=reductions, weight=[None, "weight"], ignore_index=[-100, 2], label_smoothing=[0.0, 0.2])),
        ("cross_entropy", ["scores", "target_shares"],
         products(reduction=reductions, weight=[None, "weight"], label_smoothing=[0.0, 0.2])),
        ("binary_cross_entropy", ["shares", "hot"], products(reduction=reductions, weight=[None, "weight"])),
        ("binary_cross_entropy", ["hot", "shares"], products(reduction=["none"], weight=[None])),
        ("binary_cross_entropy_with_logits", ["scores", "shares"],
         products(reduction=reductions, weight=[None, "weight"], pos_weight=[None, "weight"])),
        ("hinge_embedding_loss", ["scores", "signs_of_each"], products(reduction=reductions, margin=[1.0, 0.3])),
        ("cosine_embedding_loss", ["scores", "other", "signs"], products(reduction=reductions, margin=[0.0, 0.4])),
        ("margin_ranking_loss", ["scores", "other", "signs_of_each"], products(reduction=reductions, margin=[0.0, 0.4])),
        ("multi_margin_loss", ["scores", "classes"],
         products(reduction=reductions, p=[1, 2], margin=[1.0, 0.3], weight=[None, "weight"])),
        ("multilabel_margin_loss", ["scores", "labels"], products(reduction=reductions)),
        ("multilabel_soft_margin_loss", ["scores", "hot"], products(reduction=reductions, weight=[None, "weight"])),
        ("soft_margin_loss", ["scores", "signs_of_each"], products(reduction=reductions)),
        ("triplet_margin_loss", ["scores", "other", "third"],
         products(reduction=reductions, margin=[1.0, 0.2], p=[2.0, 1.0], swap=[False, True])),
        ("poisson_nll_loss", ["scores", "counts"], products(reduction=reductions, log_input=[True], full=[False, True])),
        ("poisson_nll_loss", ["shares", "counts"], products(reduction=reductions, log_input=[False], full=[False, True])),
        ("gaussian_nll_loss", ["scores", "other", "shares"], products(reduction=reductions, full=[False, True])),
    ]
    cases = []
    for name, names, choices in plans:
        for options in choices:
            inputs = [tensors[which].clone() for which in names]
            for tensor in inputs:
                if tensor.is_floating_point():
                    tensor.requires_grad_()
            if name in ("nll_loss", "cross_entropy") and "classes" in names[1] or name in (
                    "hinge_embedding_loss", "soft_margin_loss", "multilabel_soft_margin_loss"):
                inputs[1] = inputs[1].detach()
            if name in ("cosine_embedding_loss", "margin_ranking_loss"):
                inputs[2] = inputs[2].detach()
            passed = {key: tensors[value] if key in ("weight", "pos_weight") and value else value
                      for key, value in options.items()}
            value = getattr(F, name)(*inputs, **passed)
            factors = torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape)
            (value * factors).sum().backward()
            cases.append({"loss": name, "inputs": names, "options": options, "value": value.flatten().tolist(),
                          "gradients": [tensor.grad.flatten().tolist() if tensor.grad is not None else []
                                        for tensor in inputs]})
            cases[-1]["inputs"] = " ".join(names)
    write("losses", {"torch": torch.__version__,
                     "tensors": [{"name": name, "sizes": list(tensor.shape), "is_whole": not tensor.is_floating_point(),
                                  "values": tensor.flatten().tolist()} for name, tensor in tensors.items()],
                     "cases": cases})


def clipping():
    """Gradients of twenty steps, of magnitudes that grow, so that some steps are within the bound and others beyond it."""
    draw = random.Random(101)
    sizes = [(2, 3), (4,), (1,)]
    steps = [[torch.tensor([round(draw.uniform(-1, 1) * 1.4 ** (step - 10), 6) for _ in range(torch.Size(size).numel())],
                           dtype=torch.float64).reshape(size) for size in sizes] for step in range(STEPS)]
    steps[3][2][0] = 0.0
    steps[7][1][:] = 0.0
    inf = float("inf")

    def clipped(step, clip):
        """What clip() returns, and all gradients behind one another; one parameter has none."""
        parameters = [torch.zeros(size, dtype=torch.float64, requires_grad=True) for size in [*sizes, (2,)]]
        for parameter, gradient in zip(parameters, step):
            parameter.grad = gradient.clone()
        norm = clip(parameters)
        return norm, [number for parameter in parameters[:-1] for number in parameter.grad.flatten().tolist()]

    norms, values = [], []
    for order, most in itertools.product([0.0, 0.5, 1.0, 2.0, 3.0, inf, -inf], [0.25, 2.0, 1e6]):
        both = [clipped(step, lambda x: torch.nn.utils.clip_grad_norm_(x, most, order)) for step in steps]
        norms.append({"norm_type": order, "max_norm": most, "norms": [norm.item() for norm, _ in both],
                      "gradients": [gradient for _, gradient in both]})
    for most in [0.0, 0.1, 1.0, 1e6]:
        both = [clipped(step, lambda x: torch.nn.utils.clip_grad_value_(x, most)) for step in steps]
        values.append({"clip_value": most, "gradients": [gradient for _, gradient in both]})
    write("clipping", {"torch": torch.__version__, "sizes": sizes,
                       "steps": [{"gradients": [gradient.flatten().tolist() for gradient in step]} for step in steps],
                       "norms": norms, "values": values})


def pointwise():
    """Each row of framework/tenon/kernel/rows at ordinary points, edges, infinities and NaN."""
    rows = FOLDER.parents[1] / "framework/tenon/kernel/rows"
    inf, nan = float("inf"), float("nan")
    points = [-inf, -1000.0, -10.0, -3.5, -3.0, -2.0, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, -1e-3, -1e-20, -0.0, 0.0,
              1e-20, 1e-3, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 6.0, 10.0, 20.0, 50.0, 1000.0, inf, nan,
              -100.0, -5.0, 0.1, 4.0, 7.0, 100.0]
    pairs = list(itertools.product([-inf, -3.0, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, inf, nan], repeat=2))
    pairs += [(0.25, 0.75)] * 7
    # PyTorch's kernels treat NaN otherwise in what is left over by whole vectors: nothing is.
    assert len(points) % 8 == 0 and len(pairs) % 8 == 0
    F = torch.nn.functional
    with_parameters = {  # at the parameters that the rows name for their checks
        "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
        "elu": lambda x: torch.ops.aten.elu(x, 1.5, 0.75, 0.5),
        "celu": lambda x: F.celu(x, 1.5),
        "softplus": lambda x: F.softplus(x, 1.5, 3),
        "hardtanh": lambda x: F.hardtanh(x, -1.25, 1.5),
        "hardshrink": lambda x: F.hardshrink(x, 0.75),
        "softshrink": lambda x: F.softshrink(x, 0.75),
        "log_sigmoid": F.logsigmoid,
    }

    def function(name):
        if name in with_parameters:
            return with_parameters[name]
        if name.startswith("special_"):
            return getattr(torch.special, name.removeprefix("special_"))
        return getattr(torch, name, None) or getattr(F, name)

    def names(file, *macros):
        text = (rows / file).read_text()
        return re.findall(rf"^(?:{'|'.join(macros)})\(\w+, (\w+)", text, re.M)

    def case(name, inputs):
        inputs = [torch.tensor(values, dtype=torch.float64, requires_grad=True) for values in inputs]
        value = function(name)(*inputs)
        gradients = []
        if value.requires_grad:
            try:
                found = torch.autograd.grad(value.sum(), inputs, allow_unused=True, materialize_grads=True)
                gradients = [gradient.tolist() for gradient in found]
            except RuntimeError:  # PyTorch has none: floor_divide
                gradients = None
        return {"row": name, "value": value.to(torch.float64).tolist(), "gradients": gradients}

    a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    write("pointwise", {
        "torch": torch.__version__, "points": points, "a": a, "b": b,
        "unary": [case(name, [points]) for name in names("unary.inl", "TENON_UNARY", "TENON_UNARY_WITH")],
        "predicates": [case(name, [points]) for name in names("relations.inl", "TENON_PREDICATE")],
        "binary": [case(name, [a, b]) for name in names("binary.inl", "TENON_BINARY")],
        "comparisons": [case(name, [a, b]) for name in names("relations.inl", "TENON_COMPARISON")]})


def observers(draw):
    """Scales and zero points after each of three batches, by every observer and form."""
    from torch.ao.quantization import observer as o

    def batch(spread, shift):
        return torch.tensor([[round(draw.gauss(shift, spread), 4) for _ in range(40)] for _ in range(6)])

    courses = {"around zero": [batch(1.0, 0.1), batch(2.0, -0.3), batch(1.5, 0.0)],
               "above zero": [batch(1.0, 1.0).relu(), batch(2.0, 3.0).relu(), batch(0.5, 1.0).relu()],
               "one value": [torch.zeros(6, 40), torch.zeros(6, 40), torch.full((6, 40), 0.75)]}
    affine, symmetric = torch.per_tensor_affine, torch.per_tensor_symmetric
    kinds = {
        "MinMax": [(o.MinMaxObserver, {"dtype": torch.quint8, "qscheme": affine, "reduce_range": reduce})
                   for reduce in (False, True)] +
                  [(o.MinMaxObserver, {"dtype": torch.qint8, "qscheme": symmetric, "reduce_range": False}),
                   (o.MinMaxObserver, {"dtype": torch.quint8, "qscheme": symmetric, "reduce_range": False})],
        "MovingAverageMinMax": [(o.MovingAverageMinMaxObserver,
                                 {"dtype": torch.quint8, "qscheme": affine, "reduce_range": False,
                                  "averaging_constant": constant}) for constant in (0.01, 0.5)],
        "Histogram": [(o.HistogramObserver, {"dtype": torch.quint8, "qscheme": affine, "reduce_range": reduce})
                      for reduce in (False, True)],
        "PerChannelMinMax": [(o.PerChannelMinMaxObserver,
                              {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric, "reduce_range": False}),
                             (o.PerChannelMinMaxObserver,
                              {"dtype": torch.quint8, "qscheme": torch.per_channel_affine, "reduce_range": False})],
    }
    cases = []
    for name, forms in kinds.items():
        for (kind, options), (course, batches) in itertools.product(forms, courses.items()):
            one = kind(**options)
            scales, zero_points = [], []
            for x in batches:
                one(x)
                scale, zero_point = one.calculate_qparams()
                scales.append(scale.tolist())
                zero_points.append(zero_point.tolist())
            said = {"symmetric": "symmetric" in str(options["qscheme"]), "reduce_range": options["reduce_range"],
                    "dtype": "int8" if options["dtype"] == torch.qint8 else "uint8",
                    "averaging_constant": options.get("averaging_constant", 0.01)}
            cases.append({"observer": name, "options": said, "course": course, "scales": scales,
                          "zero_points": zero_points})
    return [{"course": name, "sizes": list(batches[0].shape), "batches": [x.flatten().tolist() for x in batches]}
            for name, batches in courses.items()], cases


def quantization():
    """Integers of 8 bits: what PyTorch's functions, layers and observers make of the same floats and scales."""
    draw = random.Random(107)

    def floats(*sizes, spread=1.0):
        count = torch.Size(sizes).numel()
        return torch.tensor([round(draw.gauss(0, spread), 4) for _ in range(count)]).reshape(sizes)

    edges = torch.tensor([0.0, 0.25, 0.75, -0.25, 1.25, 62.4, 63.8, -64.2, 1e5, -1e5, 0.125, 3.875])
    functions = []
    for scale, zero_point, dtype in [(0.5, 0, torch.qint8), (0.5, 128, torch.quint8), (0.1, 3, torch.quint8),
                                     (0.037, -5, torch.qint8)]:
        q = torch.quantize_per_tensor(edges, scale, zero_point, dtype)
        functions.append({"scale": scale, "zero_point": zero_point, "dtype": str(dtype).removeprefix("torch.q"),
                          "values": q.int_repr().tolist(), "back": q.dequantize().tolist()})
    matrix = floats(3, 4, 5)
    channels = []
    for axis in (0, 1, 2):
        scales = torch.tensor([0.02 * (i + 1) for i in range(matrix.shape[axis])])
        zero_points = torch.tensor([3 * i - 4 for i in range(matrix.shape[axis])])
        q = torch.quantize_per_channel(matrix, scales.double(), zero_points, axis, torch.qint8)
        channels.append({"axis": axis, "scales": scales.tolist(), "zero_points": zero_points.tolist(),
                         "values": q.int_repr().flatten().tolist(), "back": q.dequantize().flatten().tolist()})

    layers = []
    shapes = [("linear", (5, 12), (7, 12), {}), ("linear", (2, 3, 33), (16, 33), {}),
              ("conv2d", (2, 1, 9, 8), (6, 1, 5, 5), {"padding": 2}),
              ("conv2d", (2, 8, 7, 6), (16, 8, 3, 3), {"padding": 1}),
              ("conv2d", (1, 8, 7, 9), (4, 8, 3, 3), {"padding": 1, "stride": 2}),
              ("conv2d", (2, 16, 5, 5), (8, 16, 1, 1), {}),
              ("conv2d", (1, 8, 6, 6), (12, 4, 3, 3), {"padding": 1, "groups": 2}),
              ("conv2d", (1, 4, 9, 9), (4, 4, 3, 3), {"padding": 2, "dilation": 2})]
    for engine, (name, x_sizes, w_sizes, window) in itertools.product(("x86", "onednn"), shapes):
        torch.backends.quantized.engine = engine
        x, w, bias = floats(*x_sizes), floats(*w_sizes, spread=0.2), floats(w_sizes[0])
        x_scale, x_zero = 0.025, 101
        w_scales = w.flatten(1).abs().amax(1).double() / 127.5
        qx = torch.quantize_per_tensor(x, x_scale, x_zero, torch.quint8)
        qw = torch.quantize_per_channel(w, w_scales, torch.zeros(len(w), dtype=torch.long), 0, torch.qint8)
        y_scale, y_zero = 0.04, 90
        for relu in (False, True):
            suffix = "_relu" if relu else ""
            if name == "linear":
                packed = torch.ops.quantized.linear_prepack(qw, bias)
                y = getattr(torch.ops.quantized, "linear" + suffix)(qx, packed, y_scale, y_zero)
            else:
                pair = lambda key, default: [window.get(key, default)] * 2
                packed = torch.ops.quantized.conv2d_prepack(qw, bias, pair("stride", 1), pair("padding", 0),
                                                            pair("dilation", 1), window.get("groups", 1))
                y = getattr(torch.ops.quantized, "conv2d" + suffix)(qx, packed, y_scale, y_zero)
            layers.append({"engine": engine, "layer": name, "relu": relu, "window": window, "x_sizes": x_sizes,
                           "w_sizes": w_sizes, "x": qx.int_repr().flatten().tolist(), "x_scale": x_scale,
                           "x_zero_point": x_zero, "w": qw.int_repr().flatten().tolist(),
                           "w_scales": w_scales.tolist(), "bias": bias.tolist(), "y_scale": y_scale,
                           "y_zero_point": y_zero, "y": y.int_repr().flatten().tolist()})
    torch.backends.quantized.engine = "onednn"
    x, w, bias = floats(6, 20), floats(9, 20, spread=0.2), floats(9)
    qw = torch.quantize_per_channel(w, w.abs().amax(1).double() / 127.5, torch.zeros(9, dtype=torch.long), 0, torch.qint8)
    dynamic = torch.ops.quantized.linear_dynamic(x, torch.ops.quantized.linear_prepack(qw, bias), False)
    courses, watched = observers(draw)
    write("quantization", {"torch": torch.__version__, "edges": edges.tolist(), "matrix_sizes": list(matrix.shape),
                           "matrix": matrix.flatten().tolist(), "functions": functions, "channels": channels,
                           "layers": layers,
                           "dynamic": {"x": x.flatten().tolist(), "w": w.flatten().tolist(), "bias": bias.tolist(),
                                       "y": dynamic.flatten().tolist()},
                           "courses": courses, "observers": watched})


if __name__ == "__main__":
    quantization()
    optimizers()
    schedulers()
    losses()
    clipping()
    pointwise()
