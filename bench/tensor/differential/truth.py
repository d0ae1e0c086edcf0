"""Whether two results differ by rounding alone: both are held against the same call in float64.

What was drawn in a shorter dtype is held in float64 (`T:f64<bf16:…`), and libtorch's answer there is the truth, if Tenon's is the
same. A result of Tenon is as good as its dtype allows if it is nowhere farther from the truth than the sum of
- four times what libtorch's is at worst, also (`near`) where its operands are a unit in the last place away,
- two units in the last place of the largest number of the result,
- a few times what the truth itself moves by where each operand moves by less than a rounding of its own dtype
  (`T:f64<bf16~1:…`). What jumps (floor, comparisons, places) is not excused by this.
"""
import re

import numpy as np

SHAKEN = 3      # in so many ways
OPERATORS = 8   # what rounding between the operators of a formula adds, in roundings of its operands
DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
LEAST = {"f64": 2.0 ** -1074, "f32": 2.0 ** -149, "f16": 2.0 ** -24, "bf16": 2.0 ** -133}
MOST = {"f64": np.inf, "f32": 3.4028235677973366e38, "f16": 65520.0, "bf16": 3.3961775292304601e38}
JUMPS = re.compile(r"floor|ceil|round|trunc|frac|sign|sgn|heaviside|fmod|remainder|operator|histc|bucketize|searchsorted|quant|"
                   r"index|scatter|gather|put|copy|fill|where|view|cat|stack|nextafter|frexp")


def wide(line, way=None):
    """The same call in float64, its operands moved in that way."""
    to = r"T:f64<\1:" if way is None else rf"T:f64<\1~{way}:"
    made = re.sub(r"(?<= )D(f16|bf16|f32)(?= |$)", "Df64", re.sub(r"T:(f16|bf16|f32):", to, line))
    if made == line and not re.search(r"T:f64:| D", line):  # numbers of integers alone are computed in float32; indices stay
        made = re.sub(r"T:(i64|i32|i16|i8|u8):([0-9x-]+:\w:[a-wyz])", r"T:f64<\1:\2", line)
    return made


def asked_for(line):
    """The lines whose answers `excused` reads: of both, and of libtorch alone; none where no dtype is shorter."""
    if wide(line) == line:
        return [], []
    return [wide(line)], [] if jumps(line) else [wide(line, way) for way in range(1, SHAKEN + 1)]


def near(line, way):
    """The same call in its own dtypes, its operands a unit in the last place away in that way."""
    return re.sub(r"T:(bf16|f16|f32):", rf"T:\1~{way}:", line)


def jumps(line):
    return bool(JUMPS.search(line.split(" ")[0]))


def error(values, truth, dtype):
    """How far values are from the truth: 0 where both are infinite in that dtype, or NaN."""
    with np.errstate(all="ignore"):
        beyond = np.where(np.abs(truth) >= MOST[dtype], np.copysign(np.inf, truth), truth)
        same = (values == beyond) | (np.isnan(values) & np.isnan(truth))
        far = np.abs(values - beyond)
        return np.where(same, 0.0, np.where(np.isnan(far), np.inf, far))


def beyond_rounding(dtype, a, b, exact, mine, moved, scale, digits=None, close=()):
    """Where a (Tenon's) is farther from the truth than rounding can take it; everywhere if the two disagree on the truth.
    `close` are libtorch's answers a unit away."""
    a, b, t, m = (np.asarray(values, dtype=np.float64) for values in (a, b, exact, mine))
    with np.errstate(all="ignore"):
        shift = np.zeros_like(t)
        for way in moved:
            far = np.abs(np.asarray(way, dtype=np.float64) - t)
            shift = np.maximum(shift, np.where(np.isfinite(far), far, 0.0))
        last = np.maximum(2.0 ** (2 - (digits or DIGITS[dtype])) * np.maximum(np.abs(t), scale), LEAST[dtype])
        theirs = [error(np.asarray(answer, dtype=np.float64), t, dtype) for answer in (b, *close)]
        worst = max(np.max(far[np.isfinite(far)], initial=0.0) for far in theirs)
        # What rounding makes of the terms of a formula in this dtype, it makes of them in float64, less its digits.
        agree = (m == t) | (np.isnan(m) & np.isnan(t))
        agree |= np.abs(m - t) <= np.maximum(1e-9 * np.maximum(np.abs(t), scale), worst * 2.0 ** (DIGITS[dtype] - 49))
        left = np.logical_or.reduce([np.isinf(far) for far in theirs])
        same = (a == b) | (~np.isfinite(a) & left)  # of both the dtype was left on the way
        excused_ = same | (np.isnan(a) & np.isnan(b)) | (error(a, t, dtype) <= 4 * worst + last + OPERATORS * shift)
        return ~excused_ if agree.all() else np.ones_like(excused_)


def scale_of(results, least):
    """The largest finite number among results in float64, `least` where that is more."""
    most = least
    for result in results:
        if result is not None and result[0] == "f64":
            most = max(most, float(np.max(np.abs(result[4][np.isfinite(result[4])]), initial=0.0)))
    return most


def excused(pairs, truths, shaken, least, whole, asked=None, close=()):
    """Whether what differs is rounding, what is less than `least` being none. `pairs` are the parsed results (tenon, libtorch)
    of one stage, `truths` the same two in float64, `shaken` libtorch's of each way, `close` those in the call's own dtypes. Of a
    model the numbers within are as large as any of its results (`whole`), of a function as the result itself. `asked` is the
    dtype that the call asks for, in which it is computed whatever that of a gradient."""
    mine, exact = zip(*truths)
    for at, (ours, theirs) in enumerate(pairs):
        if ours is None or theirs is None:
            alone = theirs if ours is None else ours  # zeros, where the other side left it undefined
            if alone is not None and np.any(np.abs(alone[4].astype(np.float64)) > 1e-5):
                return False
            continue
        if exact[at] is None or mine[at] is None or not ours[1] == theirs[1] == mine[at][1] == exact[at][1] or ours[0] != theirs[0]:
            return False
        if ours[0] not in DIGITS:
            if not np.array_equal(ours[4], theirs[4]) and not np.array_equal(ours[4], exact[at][4]):
                return False
            continue
        moved = [way[at][4] for way in shaken if way[at] is not None and way[at][1] == ours[1]]
        units = [way[at][4] for way in close if way[at] is not None and way[at][:2] == ours[:2]]
        digits = min(DIGITS[ours[0]], DIGITS.get(asked, 53))
        scale = OPERATORS * scale_of(exact, least) if whole else scale_of([exact[at]], least)
        if beyond_rounding(ours[0], ours[4], theirs[4], exact[at][4], mine[at][4], moved, scale, digits, units).any():
            return False
    return True
