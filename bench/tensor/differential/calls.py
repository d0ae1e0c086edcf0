"""Random calls: the words of one call of a row, whose kinds of arguments `differential --list` says."""
import random
import re

from kinds import Call, PLAIN
from shapes import SHAPES


def chosen(text, c):
    low, high = text.split("..")
    return c.r.randrange(int(low), int(high) + 1)


def words_of(c, kind):
    """The words of one argument, or of several for a kind of the name @…."""
    if kind.startswith("@"):
        name, _, number = kind[1:].rstrip(")").partition("(")
        return SHAPES[name](c, int(number)) if number else SHAPES[name](c)
    inner = re.fullmatch(r"(\w+)\((.*)\)", kind)
    if inner is None:
        return [PLAIN[kind](c)]
    name, text = inner.groups()
    if name == "opt":
        return ["N"] if c.chance(0.4) else words_of(c, text)
    if name == "int":
        return [f"I{chosen(text, c)}"]
    if name == "real":
        return ["R" + c.r.choice(text.split("|"))]
    if name == "text":
        return ["Q" + c.r.choice(text.split("|"))]
    raise SystemExit(f"unknown kind '{kind}' of an argument")


IN_PLACE = re.compile(r"^Tensor\..*_(\.|$)|^operator.=")
SPLIT = re.compile(r"\S+")
# The derivative of sgn in libtorch contains itself: it never ends, nor do the second ones of what is made of it. Each such
# call would cost a start.
ENDLESS = [re.compile(r"(^|\.)sgn_?$"), re.compile(r"(^|\.)(abs|absolute|sign|l1_loss|L1Loss|triplet_margin_loss)_?$")]


def line_of(name, arguments, seed, more=""):
    """One random call of a row, as the program reads it, with more of what is rare (`Call`)."""
    c = Call(seed, more)
    if "_out" in name and not c.oddly(0.1):
        c.order = 0
    for order, rows in enumerate(ENDLESS):
        if rows.search(name):
            c.order = min(c.order, order)
    words = [word for kind in SPLIT.findall(arguments) for word in words_of(c, kind)]
    later = random.Random(~seed)  # of its own: the other calls stay those that they were
    if c.guard == "-" and c.order > 0 and later.random() < (1.0 if more == "writes" else 0.05):
        c.guard = f"{later.choice(('write', 'chain'))}{later.randrange(6)}"
    return f"{name} {c.order}{'w' if IN_PLACE.match(name) else '-'}{c.guard} {' '.join(words)}"
