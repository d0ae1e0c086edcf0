"""Where the rows of pointwise operators (framework/tenon/kernel/rows) can be mutated.

Their formulas are arguments of macros, which clang's tree does not show. A place is a whole formula; what stands there
instead is the formula with one sign or number changed.
"""
import re

import places

ROW = re.compile(rb"(?m)^TENON_(\w+)\(")
FORMULAS = {b"UNARY": (5, 6), b"UNARY_WITH": (7, 8), b"UNARY_KERNEL": (6, 7), b"BINARY": (4, 5, 6), b"BINARY_KERNEL": (4, 5, 6),
            b"COMPARISON": (2,), b"PREDICATE": (3,), b"BITWISE": (2,), b"BITWISE_KERNEL": (2,)}  # which arguments they are
SIGN = re.compile(rb" (<<|>>|<=|>=|==|!=|&&|\|\||[-+*/<>&|^]) ")
MINUS = re.compile(rb"(?:^|(?<=[(]|,|\?|:)|(?<=[,?:] ))-(?=[\w(])")
NUMBER = re.compile(rb"(?<![\w.])\d[\d.]*(?:[eE][-+]?\d+)?(?![\w.])")
OTHERS = {**places.COMPARED, **places.COMPUTED, "&&": ["||"], "||": ["&&"]}


def is_row_file(name: str) -> bool:
    return name.startswith("framework/tenon/kernel/rows/")


def arguments(source: bytes, at: int):
    """The ranges of a macro's arguments, which begin at `at`, behind the parenthesis."""
    ranges, depth, start = [], 0, at
    for i in range(at, len(source)):
        sign = source[i:i + 1]
        if sign == b"," and depth == 0 or sign == b")" and depth == 0:
            text = source[start:i]
            ranges.append((start + len(text) - len(text.lstrip()), start + len(text.rstrip())))
            start = i + 1
            if sign == b")":
                return ranges
        depth += (sign in b"({") - (sign in b")}")
    return ranges


def changes(formula: bytes):
    """(what is changed, the formula with it)"""
    put = lambda match, group, new: formula[:match.start(group)] + new + formula[match.end(group):]
    for m in SIGN.finditer(formula):
        for other in OTHERS[m[1].decode()]:
            yield f"{m[1].decode()} -> {other}", put(m, 1, other.encode())
    for m in MINUS.finditer(formula):
        yield "- dropped", put(m, 0, b"")
    for m in NUMBER.finditer(formula):
        if m[0].isdigit():
            yield f"{m[0].decode()} + 1", put(m, 0, b"(" + m[0] + b" + 1)")
        else:
            yield f"{m[0].decode()} * 2", put(m, 0, b"(" + m[0] + b" * 2)")


def find(source: bytes):
    found = {}
    for row in ROW.finditer(source):
        given = arguments(source, row.end())
        for start, end in (given[i] for i in FORMULAS.get(row[1], ()) if i < len(given)):
            for change, text in changes(source[start:end]):
                found.setdefault(places.Place(start, end, change, re.sub(rb"\s*\n\s*", b" ", text), "expression"))
    return list(found)
