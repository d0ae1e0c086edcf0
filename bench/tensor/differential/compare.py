"""What differs between two outcomes of one call, as the programs wrote them."""
import re

import numpy as np

NUMPY = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1", "u8": "u1", "bool": "?"}
# Relative error that needs no look: what differs more is held against float64 (truth.py), and float64 itself against this alone.
TOLERANCE = {"f64": 1e-9, "f32": 1e-6, "f16": 2e-3, "bf16": 1.6e-2}


def parsed(word):
    dtype, sizes, strides, flags, data = word.split(":")
    raw = bytes.fromhex(data)
    if dtype == "bf16":
        values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(raw, NUMPY[dtype])
    return dtype, sizes, strides, flags, values


def numbers(text):
    return [int(n) for n in text.split("x")] if text else []


def meaningful(sizes, strides):
    """Strides of dimensions that have more than one element."""
    sizes, strides = numbers(sizes), numbers(strides)
    if 0 in sizes:
        return []
    return [stride for size, stride in zip(sizes, strides) if size > 1]


def coarsest(line):
    """The relative error that the dtypes of a call excuse: that of the shortest among them; integers become f32."""
    dtypes = set(re.findall(r"T:(\w+):| D(\w+)", line))
    dtypes = {a or b for a, b in dtypes} or {"f32"}
    return max(TOLERANCE.get(dtype, TOLERANCE["f32"]) for dtype in dtypes)


def values_differ(a, b, dtype, bound, least=1e-3):
    """Whether values of that dtype differ by more than `bound`, relative to the values and to a part of the largest of
    them, or of `least` where that is more."""
    if dtype not in TOLERANCE:
        return not np.array_equal(a, b)
    a, b = a.astype(np.float64), b.astype(np.float64)
    odd = ~(np.isfinite(a) & np.isfinite(b))
    if odd.any():
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if not same[odd].all():
            return True
        a, b = a[~odd], b[~odd]
    if a.size == 0:
        return False
    bound = max(bound, TOLERANCE[dtype])
    scale = max(float(np.abs(b).max()), least)
    floor = scale if bound > 1e-3 else 0.1 * scale  # 16 bits: sums of large terms may be small
    return bool((np.abs(a - b) > bound * np.maximum(np.abs(b), floor)).any())


def word_differs(a, b, bound, least=1e-3, layouts=True):
    """What differs between two results, or None; how they lie and whether they are views is not looked at without `layouts`."""
    if a == b:
        return None
    if a.startswith(("text ", "int ")) or ":" not in a or ":" not in b:
        plain = lambda text: text.replace("tenon::", "torch::").replace("-nan", "_nan")  # noqa: E731: NaN has no sign
        return "text" if plain(a) != plain(b) else None
    x, y = parsed(a), parsed(b)
    if x[0] != y[0]:
        return "dtype"
    if x[1] != y[1]:
        return "sizes"
    if values_differ(x[4], y[4], x[0], bound, least):
        return "values"
    if not layouts:
        return None
    for flag, name in (("r", "requires a gradient"), ("v", "is a view")):
        if (flag in x[3]) != (flag in y[3]):
            return f"{'tenon' if flag in x[3] else 'libtorch'} {name}"
    if meaningful(x[1], x[2]) != meaningful(y[1], y[2]):
        return "strides"
    return None


def split_outcome(line):
    """(results, first gradients, second gradients, where it was refused, its message)"""
    line, _, error = line.partition(" error:")
    stage, _, message = error.partition(" ")
    if stage == "second":
        stage, message = "second gradient", message.partition(" ")[2]
    results, first, second = [], [], []
    for word in _words(line[3:]):
        (first if word.startswith("g=") else second if word.startswith("h=") else results).append(
            word[2:] if word[:2] in ("g=", "h=") else word)
    return results, first, second, stage, message


def _words(text):
    words, parts = [], text.split(" ")
    at = 0
    while at < len(parts):
        if parts[at] in ("int", "text"):
            words.append(" ".join(parts[at:at + 2]))
            at += 1
        elif parts[at]:
            words.append(parts[at])
        at += 1
    return words


def differs(tenon, libtorch, line, layouts=True):
    """The kind of difference between two outcomes, or None."""
    if tenon == libtorch:
        return None
    for side, outcome in (("tenon", tenon), ("libtorch", libtorch)):
        if outcome.startswith(("crash", "hang")):
            return f"{side} {outcome.split()[0]}es" if outcome.startswith("crash") else f"{side} hangs"
        if outcome.startswith("bad"):
            return "bad call"
    a, b = split_outcome(tenon), split_outcome(libtorch)
    if a[3] != b[3]:
        first = min((s for s in (a[3], b[3]) if s), key=["call", "write", "gradient", "second gradient"].index)
        side = "tenon" if a[3] == first else "libtorch"
        return f"{side} refuses" + ("" if first == "call" else f" the {first}")
    if a[3] == "call":
        return None
    # Gradients are of sums with weights near 1: what is much less is left of terms that cancel.
    for name, at, looser, least in (("", 0, 1, 1e-3), ("gradient: ", 1, 4, 0.1), ("second gradient: ", 2, 20, 0.1)):
        if len(a[at]) != len(b[at]):
            return name + "number of results"
        for place, (left, right) in enumerate(zip(a[at], b[at])):
            what = word_differs(left, right, looser * coarsest(line), least, layouts)
            if what:
                # Of values and their places, two that are equal may be told apart by the place alone.
                places = what == "values" and place > 0 and at == 0 and left.startswith("i64:")
                return name + ("places" if places else what)
    return None


def gap(tenon, libtorch, line, kind):
    """How far apart the finite numbers of that kind of difference are at most, over the largest of them and of those that
    the call was made with (what is left of terms that cancel); and whether one side is finite alone, or another NaN."""
    stage = {"": 0, "gradient: ": 1, "second gradient: ": 2}[kind.removesuffix("values")]
    drawn = 60000.0 if re.search(r"T:b?f\w+:[0-9x-]*:\w:e:", line) else 255.0 if ":e:" in line else 8.0
    most, odd = 0.0, False
    for left, right in zip(split_outcome(tenon)[stage], split_outcome(libtorch)[stage]):
        if left == right or left.startswith("text ") or left.count(":") != 4 or right.count(":") != 4:
            continue
        a, b = (parsed(word)[4].astype(np.float64) for word in (left, right))
        finite = np.isfinite(a) & np.isfinite(b)
        odd = odd or not ((a == b) | (np.isnan(a) & np.isnan(b)))[~finite].all()
        if finite.any():
            a, b = a[finite], b[finite]
            most = max(most, float(np.abs(a - b).max() / max(drawn, np.abs(b).max())))
    return most, odd


def integers_alone(tenon, libtorch, line):
    """Whether only results of integer dtypes differ."""
    for left, right in zip(split_outcome(tenon)[0], split_outcome(libtorch)[0]):
        if left != right and left.count(":") == 4 and parsed(left)[0] in TOLERANCE and word_differs(left, right, coarsest(line)):
            return False
    return True


def zero_alone(tenon, libtorch, line):
    """Whether every gradient that one side alone has is zero everywhere, or rounding."""
    least = 1e-2 if re.search("T:b?f16|Db?f16", line) else 1e-5
    for stage in (1, 2):
        ours, theirs = split_outcome(tenon)[stage], split_outcome(libtorch)[stage]
        pairs = zip(ours, theirs) if len(ours) == len(theirs) else ((word, "undefined") for word in ours + theirs)
        for left, right in pairs:
            word = left if right == "undefined" else right if left == "undefined" else "undefined"
            if word != "undefined" and not np.all(np.abs(parsed(word)[4].astype(np.float64)) < least):
                return False
    return True
