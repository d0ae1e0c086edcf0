"""Which mutants a run plants: files of a layer or lines of a branch, drawn by a seed, and tried on clang before g++ sees them.

A file is drawn by its length, and in it first a class of change, so that constants, which are everywhere, do not crowd out
the rest.
"""
import collections
import hashlib
import multiprocessing
import random
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import places
import rows
import schema

HERE = Path(__file__).parent
# What a file is read with that is no source by itself.
READ_BEHIND = {"framework/tenon/kernel/pointwise_helpers.inl": "tenon/kernel/pointwise.h"}
# Plugins, or parts of them, that have tests of their own: layers by themselves, and not of `plugins`.
APART = {"kernels": "plugins/cpu/kernels", "cuda_kernels": "plugins/cuda/kernels", "mpi": "plugins/mpi", "nccl": "plugins/nccl"}
FOLDERS = {"allocators": "allocators", "plugins": "plugins", **APART}


@dataclass(frozen=True)
class Mutant:
    number: int
    layer: str
    file: str
    line: int
    code: str  # the line as it is
    change: str
    place: places.Place


@dataclass(frozen=True)
class Target:
    layer: str
    file: str
    lines: tuple  # of (first, last); empty for all


def layer_of(file: str) -> str:
    for layer, folder in APART.items():
        if file.startswith(folder + "/"):
            return layer
    parts = file.split("/")
    return parts[2] if file.startswith("framework/tenon/") and len(parts) > 3 else parts[0]


def targets_of(root: Path, words):
    """Layers, folders, files, FILE:LINE or FILE:FIRST-LAST."""
    targets = []
    for word in words:
        name, _, lines = word.partition(":")
        ranges = ()
        if lines:
            if not re.fullmatch(r"\d+(-\d+)?", lines):
                raise SystemExit(f"mutate: '{word}': after the file's name stands LINE or FIRST-LAST")
            first, _, last = lines.partition("-")
            ranges = ((int(first), int(last or first)),)
        path = next((p for p in (FOLDERS.get(name, "framework/tenon/" + name), name.rstrip("/")) if (root / p).exists()), None)
        if path is None:
            raise SystemExit(f"mutate: there is no layer, folder or file '{name}' (layers: {', '.join(sorted(FOLDERS))} and the folders "
                             "of framework/tenon)")
        if (root / path).is_file():
            files = [path]
        else:
            listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", path], cwd=root, capture_output=True,
                                    text=True, check=True).stdout
            files = sorted(f for f in listed.splitlines() if f.endswith((".cpp", ".h")) or rows.is_row_file(f) or f in READ_BEHIND)
        if name in FOLDERS:
            files = [f for f in files if layer_of(f) == name]
        targets += [Target(layer_of(f), f, ranges) for f in files]
    joined = {}  # a file may be named for several of its lines
    for t in targets:
        old = joined.get(t.file)
        both = t.lines + old.lines if old and t.lines and old.lines else () if old else t.lines
        joined[t.file] = Target(t.layer, t.file, tuple(sorted(set(both))))
    return list(joined.values())


def changed_targets(root: Path):
    """The lines that differ from the main branch, or on it from the commit before."""
    run = lambda *words: subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    head = run("rev-parse", "HEAD").stdout.strip()
    bases = [run("merge-base", "HEAD", b).stdout.strip() for b in ("main", "origin/main")]
    base = next((b for b in bases if b and b != head), "HEAD~1")
    targets, file, ranges = [], None, []
    for line in run("diff", "-U0", base, "--", "framework", "allocators", "plugins").stdout.splitlines() + ["+++ b/"]:
        if line.startswith("+++ "):
            if file and file.endswith((".cpp", ".h")) and ranges:
                targets.append(Target(layer_of(file), file, tuple(ranges)))
            file, ranges = line[6:], []
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            if count:
                ranges.append((first, first + count - 1))
    return targets


def class_of(change: str) -> str:
    if change.startswith(("dropped", "if (", "arguments")):
        return change.split()[0]
    if change.startswith(("true", "false")) or re.search(r" (\+|\*) \d$", change):
        return "constant"
    if re.match(r"(<|<=|>|>=|==|!=) ", change):
        return "compared"
    return "logic" if re.search(r"&&|\|\||!|negated|\?:", change) else "computed"


@dataclass(frozen=True)
class Wish:
    """A file, what clang needs to read it, and how many mutants are wanted of it."""
    root: str
    target: Target
    arguments: tuple
    wanted: int
    seed: str


def sample(wish: Wish):
    """(places that compile, how many there are, how many a macro hides, how many do not compile)"""
    source = Path(f"{wish.root}/{wish.target.file}").read_bytes()
    if rows.is_row_file(wish.target.file):  # macros, which clang reads where they are included; g++ says what does not compile
        found, hidden, compiles = rows.find(source), 0, lambda chosen: True
    else:
        found, hidden, compiles = read_by_clang(wish, source)
    if wish.target.lines:
        line = lambda p: source.count(b"\n", 0, p.start) + 1
        found = [p for p in found if any(a <= line(p) <= b for a, b in wish.target.lines)]
    order = in_drawn_order(found, wish.seed)
    good, refused = [], 0
    while order and len(good) < wish.wanted:
        some, order = order[:wish.wanted - len(good)], order[wish.wanted - len(good):]
        if not compiles(good + some):
            kept = [p for p in some if compiles([p])]
            refused += len(some) - len(kept)
            some = kept
        good += some
    return good, len(found), hidden, refused


def read_by_clang(wish: Wish, source: bytes):
    """(its places, how many a macro hides, a function that says whether some of them compile at once)"""
    from clang import cindex
    path = f"{wish.root}/{wish.target.file}"
    words = ["-x", "c++", *wish.arguments, "-w", "-include", str(HERE / "switch.h"), "-include", str(HERE / "source_location.h")]
    read_with = places.READ_WITH
    if wish.target.file in READ_BEHIND:
        words += ["-include", READ_BEHIND[wish.target.file]]
        read_with = places.READ_ONCE  # it is in there, too
    unit = cindex.Index.create().parse(path, words, options=read_with)
    if broken := errors(unit):
        raise RuntimeError(f"clang does not read {wish.target.file}: {broken[0]}")
    found, hidden = places.find(unit, source)

    def compiles(chosen):
        if wish.target.file in READ_BEHIND:  # all of that would be read anew each time: g++ says it
            return True
        planted = [schema.Planted(i + 1, p) for i, p in enumerate(chosen)]
        unit.reparse([(path, schema.write(source, planted))], options=places.READ_WITH)
        return not errors(unit)

    return found, hidden, compiles


def in_drawn_order(found, seed):
    classes = collections.defaultdict(list)
    for place in found:
        classes[class_of(place.change)].append(place)
    rng = random.Random(seed)
    for group in classes.values():
        rng.shuffle(group)
    order = []
    while any(classes.values()):
        name = rng.choice(sorted(n for n in classes if classes[n]))
        order.append(classes[name].pop())
    return order


def errors(unit):
    return [f"{d.location.line}: {d.spelling}" for d in unit.diagnostics if d.severity >= 3]


def draw(tree, targets, count, seed, jobs, say, files_most=0):
    """The mutants, and of each layer what was looked at: {layer: [places, hidden by macros, refused by the compiler]}."""
    mutants, looked = [], {}
    layers = sorted({t.layer for t in targets})
    with multiprocessing.Pool(jobs) as pool:
        for layer in layers:
            files = [t for t in targets if t.layer == layer and tree.is_built(t.file)]
            text = {t.file: (tree.root / t.file).read_bytes() for t in files}
            rng, chosen, seen = random.Random(f"{seed} {layer}"), {}, {}
            wide = [t for t in files if tree.is_wide(t.file)]
            narrow = [t for t in files if t not in wide]
            if files_most:
                narrow = drawn_by_length(narrow, files_most, text, rng)
            for some in (narrow, wide):  # what nearly everything includes is the last resort
                draw_some(tree, some, count, seed, pool, rng, chosen, seen, say)
            looked[layer] = [sum(c) for c in zip(*seen.values())] or [0, 0, 0]
            for file in sorted(chosen):
                mutants += numbered(len(mutants) + 1, layer, file, text[file], chosen[file])
    return mutants, looked


def numbered(first, layer, file, source: bytes, found):
    in_order = sorted(found, key=lambda p: (p.start, -p.end, p.change))
    return [Mutant(first + i, layer, file, *line_of(source, p), p.change, p) for i, p in enumerate(in_order)]


def line_of(source: bytes, place):
    """Its number and what stands in it."""
    line = source.count(b"\n", 0, place.start) + 1
    return line, source.split(b"\n")[line - 1].strip().decode(errors="replace")


def again(tree, entries, say):
    """What draw() gives, of the mutants of earlier results, wherever they stand now; what stands nowhere any more is said."""
    by_file, mutants, looked = {}, [], {}
    for entry in entries:
        by_file.setdefault((entry["layer"], entry["file"]), []).append(entry)
    for (layer, file), some in sorted(by_file.items()):
        places_now, gone = [], some
        if (tree.root / file).exists() and tree.is_built(file):
            wish = Wish(str(tree.root), Target(layer, file, ()), tuple(tree.parse_arguments(file)), 0, "")
            source = (tree.root / file).read_bytes()
            found = rows.find(source) if rows.is_row_file(file) else read_by_clang(wish, source)[0]
            places_now, gone = where_now(source, found, some)
            mutants += numbered(len(mutants) + 1, layer, file, source, places_now)
        for entry in gone:
            say(f"{file}:{entry['line']}: {entry['change']}: stands there no more")
        looked[layer] = [looked.get(layer, [0])[0] + len(places_now), 0, 0]
    return mutants, looked


def where_now(source: bytes, found, entries):
    """(the places that the entries name by their line's text and their change, the entries that name none). Of several lines
    with the same text it is the nearest one, and in that every place with the change."""
    places_now, gone = {}, []
    for entry in entries:
        at = {}
        for place in found:
            line, code = line_of(source, place)
            if (code, place.change) == (entry["code"], entry["change"]):
                at.setdefault(line, []).append(place)
        if at:
            places_now.update(dict.fromkeys(at[min(at, key=lambda line: abs(line - entry["line"]))]))
        else:
            gone.append(entry)
    return list(places_now), gone


def drawn_by_length(files, most, text, rng):
    key = {t.file: rng.random() ** (1 / (1 + text[t.file].count(b"\n"))) for t in files}
    return sorted(sorted(files, key=lambda t: -key[t.file])[:most], key=lambda t: t.file)


def draw_some(tree, files, count, seed, pool, rng, chosen, seen, say):
    """Adds to `chosen` what is missing to `count`: {file: places}; `seen` is what sample() counted."""
    weight = [sum(b - a + 1 for a, b in t.lines) or (tree.root / t.file).read_bytes().count(b"\n") for t in files]
    for turn in range(4):
        missing = count - sum(map(len, chosen.values()))
        if missing <= 0 or not any(weight):
            break
        wanted = collections.Counter(rng.choices(range(len(files)), weight, k=missing))
        wishes = [Wish(str(tree.root), files[i], tuple(tree.parse_arguments(files[i].file)),
                       n + len(chosen.get(files[i].file, [])), f"{seed} {files[i].file}") for i, n in sorted(wanted.items())]
        say(f"{files[0].layer}: reading {len(wishes)} files")
        for wish, (good, *counts) in zip(wishes, pool.map(sample, wishes, chunksize=1)):
            chosen[wish.target.file], seen[wish.target.file] = good, counts
            if len(good) < wish.wanted:  # there are no more
                weight[files.index(wish.target)] = 0


def digest(root: Path, targets) -> str:
    parts = [(t.file, t.lines, hashlib.sha256((root / t.file).read_bytes()).hexdigest()) for t in targets]
    parts += [hashlib.sha256((Path(__file__).parent / f).read_bytes()).hexdigest() for f in ("places.py", "rows.py", "schema.py", "plan.py")]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
