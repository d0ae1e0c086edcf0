"""What is asked once more of a call whose outcomes differ without a reason:
- of libtorch, the same call where operands are a unit in the last place away: what an algorithm with decisions (a line search)
  makes of roundings, of which four times the worst is excused, as in truth.py;
- of libtorch, the same numbers in other layouts: where it answers in one of them as Tenon does, it reads a layout wrongly, or
  its vectors and the ends of its loops differ;
- of both in float64, points beside the one drawn, where nothing is equal or a bound by chance: where they agree there, they
  differ about a kink alone. Only rules that say `beside` excuse this: on the kink itself functions have one answer;
- of both, what they answer in float64 and a unit away: where that is alike, an algorithm has decided by a rounding (`steady`);
- of both in float64, whether a gradient that one side alone has is zero there (`zeros`);
- of Tenon, the call without the write between it and its gradients that libtorch refuses: where its gradients are the same,
  it did not need what was written to.
"""
import re

from compare import differs, zero_alone
from truth import jumps, near, wide

NEAR = 4
BESIDE = 3
# What a layout decides: these may answer otherwise.
OF_LAYOUTS = re.compile(r"^(Tensor\.)?(as_strided|view|reshape|contiguous|is_|stride|facts|print|data|flatten|ravel|written|detach)")


def near_lines(line):
    """The call a unit away in each way; none where no dtype is shorter than float64, or where results jump."""
    return [] if jumps(line) or near(line, 1) == line else [near(line, way) for way in range(1, NEAR + 1)]


def other_layouts(line):
    """The call with the same numbers in order, and with gaps between them."""
    if OF_LAYOUTS.search(line):
        return []
    ordered = re.sub(r"(T:[^:]+:[0-9x-]+):([tsol])", r"\1:c", re.sub(r"(T:[^:]+:[0-9x-]+):e", r"\1:f", line))
    gaps = re.sub(r"(T:[^:]+:[0-9x-]+):[ctol]", r"\1:s", line)
    return [other for other in (ordered, gaps) if other != line]


def answers_so(tenon, others, line):
    """Whether libtorch's answer in another layout is Tenon's."""
    return any(other.startswith("ok") and differs(tenon, other, line, layouts=False) is None for other in others)


def beside_lines(line):
    """The call in float64 at points beside."""
    wider = re.sub(r"T:(f64):", r"T:f64<\1:", wide(line))
    if "T:f64<" not in wider:
        return []
    return [re.sub(r"T:f64<(\w+):", rf"T:f64<\1@{way}:", wider) for way in range(1, BESIDE + 1)]


def steady_lines(line):
    """The call in float64, and a unit away in its own dtypes."""
    return [wide(line), *(near(line, way) for way in range(1, NEAR + 1))] if near(line, 1) != line else []


def agreements(pairs, lines):
    """At how many of them both answer alike."""
    return sum(differs(a, b, line, layouts=False) is None for line, (a, b) in zip(lines, pairs))


def agree_beside(ask, line):
    """Whether both answer alike at every point beside; `ask` gives the outcomes of lines."""
    lines = beside_lines(line)
    return bool(lines) and agreements(ask(lines), lines) == len(lines)


def agree_steadily(ask, line):
    """Whether both answer alike in float64 and mostly a unit away."""
    lines = steady_lines(line)
    if not lines:
        return False
    pairs = ask(lines)
    return agreements(pairs[:1], lines[:1]) == 1 and 2 * agreements(pairs[1:], lines[1:]) >= NEAR


def zero_in_float64(ask, line):
    """Whether what one side alone has is zero everywhere in float64: what it is in 16 bits is rounding of terms that cancel."""
    return wide(line) != line and zero_alone(*ask([wide(line)])[0], wide(line))


def needs_no_write(ask, line, tenon):
    """Whether Tenon's outcome is the one that the call has without the write behind it."""
    without = re.sub(r"^(\S+ \d.)write\d", r"\1-", line)
    return without != line and " error:" not in tenon and ask([without])[0][0] == tenon
