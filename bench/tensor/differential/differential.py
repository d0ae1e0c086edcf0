#!/usr/bin/env python3
"""Random calls of every function, method and module, in Tenon and in libtorch: what differs, shrunk to one call.

  python bench/tensor/differential/differential.py --tenon build/release/bench/tenon_differential \\
      --libtorch build/release/bench/libtorch_differential [--calls 100000] [--seed 1] [--rows REGEX] [--all] [--json FILE]
  … --line 'add 1-- T:f32:2x3:c:n:1:g T:f32:3:c:n:2'      one call, both outcomes in full
  … --list                                                  the rows that both have, and those of libtorch alone

Compared are values, dtypes, sizes, strides, whether a result is a view or requires a gradient, which calls are refused,
first and second gradients, and tensors written in place; a crash or a hang is a difference. Differences that are accepted
stand in accepted.toml with their reasons, those that are to be mended marked. Exit code 1 if there is another one.
"""
import argparse
import collections
import json
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import calls  # noqa: E402

BATCH = 10_000
SECONDS = 300  # for one batch
NUMPY = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1", "u8": "u1", "bool": "?"}
# Relative error of a result of a few operations, and of one that sums or differentiates.
TOLERANCE = {"f64": 1e-9, "f32": 3e-5, "f16": 6e-3, "bf16": 5e-2}


# --- running ---

def answers(program, lines):
    """The program's line for each line; "crash …" or "hang" where it gave none."""
    result = []
    while len(result) < len(lines):
        rest = "\n".join(lines[len(result):]) + "\n"
        try:
            ran = subprocess.run([program], input=rest, capture_output=True, text=True, timeout=SECONDS)
            output, why = ran.stdout, f"crash {ran.returncode}"
        except subprocess.TimeoutExpired as late:
            output, why = (late.stdout or b"").decode(), "hang"
        # What follows the last line end is a line that was begun. Other lines are a library's: MKL names wrong parameters.
        result += [answer[1:] for answer in output.split("\n")[:-1] if answer.startswith(">")]
        if len(result) < len(lines):
            result.append(why)
    return result


def both(programs, lines):
    found = [None, None]

    def one(at):
        found[at] = answers(programs[at], lines)

    threads = [threading.Thread(target=one, args=(at,)) for at in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(zip(*found))


# --- comparing ---

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


def word_differs(a, b, bound, least=1e-3):
    """What differs between two results, or None."""
    if a == b:
        return None
    if a.startswith(("text ", "int ")) or ":" not in a or ":" not in b:
        return "text" if a.replace("tenon::", "torch::") != b.replace("tenon::", "torch::") else None
    x, y = parsed(a), parsed(b)
    if x[0] != y[0]:
        return "dtype"
    if x[1] != y[1]:
        return "sizes"
    if values_differ(x[4], y[4], x[0], bound, least):
        return "values"
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


def differs(tenon, libtorch, line):
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
        first = min((s for s in (a[3], b[3]) if s), key=["call", "gradient", "second gradient"].index)
        side = "tenon" if a[3] == first else "libtorch"
        return f"{side} refuses" + ("" if first == "call" else f" the {first}")
    if a[3] == "call":
        return None
    # Gradients are of sums with weights near 1: what is much less is left of terms that cancel.
    for name, at, looser, least in (("", 0, 1, 1e-3), ("gradient: ", 1, 4, 0.1), ("second gradient: ", 2, 20, 0.1)):
        if len(a[at]) != len(b[at]):
            return name + "number of results"
        for place, (left, right) in enumerate(zip(a[at], b[at])):
            what = word_differs(left, right, looser * coarsest(line), least)
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


# --- shrinking ---

def simpler(line):
    """Lines that ask for a little less."""
    name, flags, *words = line.split(" ")
    if flags[0] != "0":
        yield " ".join([name, str(int(flags[0]) - 1) + flags[1:], *words])
    if flags[2:] != "-":
        yield " ".join([name, flags[:2] + "-", *words])
    for at, word in enumerate(words):
        for other in simpler_words(word):
            yield " ".join([name, flags, *words[:at], other, *words[at + 1:]])
    # The same size less in every tensor: what belongs together stays together.
    for size in sorted(set(re.findall(r"(?<=[x:])([2-9])(?=[x:])", line))):
        yield re.sub(rf"(?<=[x:]){size}(?=[x:])", str(int(size) - 1), line)
    for dtype in ("f32", "f64"):
        for other in set(re.findall(r"T:(\w+):", line)) - {dtype, "bool", "i64"}:
            if (other, dtype) != ("f32", "f64"):
                yield line.replace(f"T:{other}:", f"T:{dtype}:")


def simpler_words(word):
    if word.startswith("["):
        inner = word[1:-1].split(";")
        for at in range(len(inner)):
            if len(inner) > 1:
                yield "[" + ";".join(inner[:at] + inner[at + 1:]) + "]"
            for other in simpler_words(inner[at]):
                yield "[" + ";".join(inner[:at] + [other] + inner[at + 1:]) + "]"
        return
    if not word.startswith("T:"):
        if re.fullmatch(r"S[ri].*", word) and word not in ("Si1", "Si0"):
            yield "Si1"
        if word == "B1":
            yield "B0"
        return
    _, dtype, sizes, layout, values, seed, *grad = word.split(":")
    made = lambda **k: ":".join(["T", k.get("dtype", dtype), k.get("sizes", sizes), k.get("layout", layout),
                                 k.get("values", values), k.get("seed", seed), *k.get("grad", grad)])
    if layout != "c":
        yield made(layout="c")
    if grad:
        yield made(grad=[])
    if values in "epuidw" and values != "n":
        yield made(values="n")
    if seed != "1":
        yield made(seed="1")
    parts = sizes.split("x") if sizes != "-" else []
    for at in range(len(parts)):
        yield made(sizes="x".join(parts[:at] + parts[at + 1:]) or "-")
        if parts[at] not in ("0", "1"):
            yield made(sizes="x".join(parts[:at] + ["1"] + parts[at + 1:]))


def shrunk(programs, line, kind, rounds=12):
    """A simpler line with the same kind of difference."""
    for _ in range(rounds):
        candidates = list(dict.fromkeys(simpler(line)))[:150]
        if not candidates:
            return line
        for candidate, (a, b) in zip(candidates, both(programs, candidates)):
            if differs(a, b, candidate) == kind:
                line = candidate
                break
        else:
            return line
    return line


# --- the program ---

def accepted_of(file):
    rules = tomllib.loads(file.read_text())["accepted"]
    for rule in rules:
        rule["row"], rule["kind"] = re.compile(rule.get("row", ".*")), re.compile(rule.get("kind", ".*"))
        rule["line"] = re.compile(rule.get("line", ""))
        if "message" in rule:
            rule["message"] = re.compile(rule["message"])
        rule["count"] = 0
    return rules


def plain_names(name):
    """The row's name, and that of the function or module that it calls with options."""
    function = re.sub(r"^(Tensor\.)?F\.", "", name)
    if name.startswith("Tensor.F."):
        function = function.removesuffix("_")
    return {name, function, re.sub(r"\.(options|train|eval|mode|tanh|weight|weights|scale|eps|dtype)$", "", function)}


def reason_of(rules, name, kind, line, outcomes):
    texts = None
    for rule in rules:
        if not (any(rule["row"].fullmatch(each) for each in plain_names(name)) and rule["kind"].fullmatch(kind) and rule["line"].search(line)):
            continue
        if "message" in rule:
            texts = texts or "\n".join(shown(outcome, 100_000) for outcome in outcomes)
            if not rule["message"].search(texts):
                continue
        if ("within" in rule or "odd" in rule) and kind.endswith("values"):
            most, odd = gap(*outcomes, line, kind)
            if most > rule.get("within", TOLERANCE["bf16"]) or odd != rule.get("odd", False):
                continue
        if "zeros" in rule and not zero_alone(*outcomes, line):
            continue
        rule["count"] += 1
        return rule
    return None


def rows_of(program):
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in listed.splitlines())


def shown(outcome, most=300):
    results, first, second, stage, message = split_outcome(outcome) if outcome.startswith("ok") else ([], [], [], outcome, "")
    text = []
    for prefix, words in (("", results), ("gradient ", first), ("second ", second)):
        for word in words:
            if word.count(":") == 4 and not word.startswith("text "):
                dtype, sizes, strides, flags, values = parsed(word)
                text.append(f"{prefix}{dtype}[{sizes.replace('x', ',')}] strides {strides.replace('x', ',')} {flags} "
                            + np.array2string(values, precision=6, threshold=24 if most < 10_000 else 100_000, separator=",").replace("\n", ""))
            else:
                text.append(prefix + word)
    if stage:
        text.append(f"refused ({stage}): {message}")
    return "; ".join(text)[:most]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tenon", required=True)
    options.add_argument("--libtorch", required=True)
    options.add_argument("--calls", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rows", default="")
    options.add_argument("--all", action="store_true", help="show the accepted ones, too")
    options.add_argument("--open", action="store_true", help="show the known ones that are to be mended, too")
    options.add_argument("--line")
    options.add_argument("--list", action="store_true")
    options.add_argument("--json")
    options.add_argument("--no-shrink", action="store_true")
    options = options.parse_args()
    programs = (options.tenon, options.libtorch)
    rows, theirs = rows_of(options.tenon), rows_of(options.libtorch)
    if options.list:
        print("\n".join(rows))
        print("libtorch alone: " + ", ".join(sorted(set(theirs) - set(rows))))
        return
    if options.line:
        (a, b), = both(programs, [options.line])
        print(f"tenon     {shown(a, 4000)}\nlibtorch  {shown(b, 4000)}\n{differs(a, b, options.line) or 'no difference'}")
        return
    chosen = [name for name in rows if name in theirs and re.search(options.rows, name)]
    if not chosen:
        raise SystemExit(f"no row matches '{options.rows}'")
    rules, found, ran = accepted_of(HERE / "accepted.toml"), {}, collections.Counter()
    print(f"{options.calls} calls of {len(chosen)} rows, seed {options.seed}", flush=True)
    for begin in range(0, options.calls, BATCH):
        numbers_ = range(begin, min(begin + BATCH, options.calls))
        names = [chosen[n % len(chosen)] for n in numbers_]
        lines = [calls.line_of(name, rows[name], options.seed * 1_000_000_007 + n) for name, n in zip(names, numbers_)]
        for name, line, (a, b) in zip(names, lines, both(programs, lines)):
            ran["refused by both" if " error:call" in a and " error:call" in b else "ran"] += 1
            kind = differs(a, b, line)
            if kind is None:
                continue
            rule = reason_of(rules, name, kind, line, (a, b))
            if rule is not None and not options.all and not (options.open and rule.get("open", False)):
                continue
            entry = found.setdefault((name, kind), {"count": 0, "line": line, "outcomes": (a, b)})
            entry["count"] += 1
            if len(line) < len(entry["line"]):
                entry |= {"line": line, "outcomes": (a, b)}
    known = lambda still_open: sum(r["count"] for r in rules if r.get("open", False) == still_open)
    print(f"{ran['ran']} ran, {ran['refused by both']} were refused by both; {known(False)} differences are meant, "
          f"{known(True)} known and to be mended, {sum(e['count'] for e in found.values())} unexplained in {len(found)} kinds")
    report = []
    for (name, kind), entry in sorted(found.items()):
        line, (a, b) = entry["line"], entry["outcomes"]
        if not options.no_shrink:
            line = shrunk(programs, line, kind)
            (a, b), = both(programs, [line])
        report.append({"row": name, "kind": kind, "count": entry["count"], "line": line, "tenon": shown(a), "libtorch": shown(b)})
        print(f"\n{name}: {kind} ({entry['count']})\n  {line}\n  tenon     {shown(a)}\n  libtorch  {shown(b)}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
