"""All mutants of a file in one source: each place becomes a choice that asks which mutant is on.

    a < b        (tenon_mutants::on(7) ? (a <= b) : (a < b))
    if (full)    if (tenon_mutants::on(8) ? true : static_cast<bool>(full))
    count();     (tenon_mutants::on(9) ? void() : void(count()));

What a mutant puts in place is the source as it was, since one mutant alone is on; places inside another one are written out
in its last branch. Lines keep their numbers.
"""
from dataclasses import dataclass

from places import Place


@dataclass(frozen=True)
class Planted:
    number: int
    place: Place


def write(source: bytes, planted) -> bytes:
    """The source with these mutants in it."""
    return _render(source, 0, len(source), sorted(planted, key=lambda m: (m.place.start, -m.place.end, m.number)))


def _render(source, start, end, planted) -> bytes:
    out, at, i = [], start, 0
    while i < len(planted):
        first = planted[i].place
        same = [m for m in planted[i:] if (m.place.start, m.place.end) == (first.start, first.end)]
        inner = [m for m in planted[i:] if m not in same and m.place.start < first.end]
        out.append(source[at:first.start])
        whole = _render(source, first.start, first.end, inner)
        out.append(_choice(same, whole))
        at = first.end
        i += len(same) + len(inner)
    out.append(source[at:end])
    return b"".join(out)


def _choice(same, whole: bytes) -> bytes:
    """Of several forms at one range the outermost is the statement, then the condition."""
    on = lambda m: b"tenon_mutants::on(%d)" % m.number
    for m in same:
        if m.place.form == "expression":
            whole = b"(%s ? (%s) : (%s))" % (on(m), m.place.text, whole)
    for m in same:
        if m.place.form == "condition":
            whole = b"(%s ? %s : static_cast<bool>(%s))" % (on(m), m.place.text, whole)
    for m in same:
        if m.place.form == "statement":
            whole = b"(%s ? void() : void(%s))" % (on(m), whole)
        elif m.place.form == "jump":
            whole = b"if (%s) {} else %s" % (on(m), whole)
    return whole


def apply(source: bytes, place: Place) -> bytes:
    """The source as if somebody had written the mutant: what a reader is shown."""
    return source[:place.start] + place.text + source[place.end:]
