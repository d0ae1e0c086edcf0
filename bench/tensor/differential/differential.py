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
import again  # noqa: E402
import calls  # noqa: E402
import truth  # noqa: E402
from compare import TOLERANCE, differs, gap, integers_alone, parsed, split_outcome, zero_alone  # noqa: E402

BATCH = 10_000
SECONDS = 300  # for one batch


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


# --- rounding ---

# What is no difference: gradients are of sums with weights near 1, second ones have terms as large as the operands.
LEAST = (1e-3, 1.0, 8.0)
STAGES = {"values": 0, "places": 0, "gradient: values": 1, "second gradient: values": 2}


def parsed_stage(outcome, stage):
    """The results of a stage, None for what is no tensor; or None where the call did not come that far."""
    if not outcome.startswith("ok"):
        return None
    words = split_outcome(outcome)[stage]
    return [parsed(word) if word.count(":") == 4 and not word.startswith("text ") else None for word in words]


def rounded_alone(programs, found, units=False):
    """Of (line, kind, outcomes), those that float64 calls to be rounding, as a set of places. With `units` libtorch is also asked
    a unit away."""
    places = [at for at, (line, kind, _) in enumerate(found) if kind in STAGES and truth.asked_for(line)[0]]
    asked = [truth.asked_for(found[at][0]) for at in places]
    wide = both(programs, [line for first, _ in asked for line in first])
    shaken = iter(answers(programs[1], [line for _, ways in asked for line in ways]))
    close_lines = [again.near_lines(found[at][0]) if units else [] for at in places]
    close = iter(answers(programs[1], [line for lines in close_lines for line in lines]))
    result = set()
    for at, (_, ways), lines, outcomes in zip(places, asked, close_lines, wide):
        moved, away = [next(shaken) for _ in ways], [next(close) for _ in lines]
        stage = STAGES[found[at][1]]
        sides = [parsed_stage(outcome, stage) for outcome in (*found[at][2], *outcomes, *moved)]
        ours, theirs, mine, exact, *others = sides
        if None in (ours, theirs, mine, exact) or not len(ours) == len(theirs) == len(mine) == len(exact):
            continue
        others = [side for side in others if side is not None and len(side) == len(exact)]
        away = [side for side in (parsed_stage(outcome, stage) for outcome in away) if side is not None and len(side) == len(exact)]
        line = found[at][0]
        asked_dtype = re.search(r" D(\w+)", line)
        if truth.excused(list(zip(ours, theirs)), list(zip(mine, exact)), others, LEAST[stage], line.startswith("nn."),
                         asked_dtype and asked_dtype.group(1), away):
            result.add(at)
    return result


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
            if differs(a, b, candidate) == kind and not again.needs_no_write(lambda lines: both(programs, lines), candidate, a):
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


def reason_of(programs, rules, name, kind, line, outcomes):
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
        if "integers" in rule and not integers_alone(*outcomes, line):
            continue
        ask = lambda lines: both(programs, lines)  # noqa: E731
        if "zeros" in rule and not (zero_alone(*outcomes, line) or again.zero_in_float64(ask, line)):
            continue
        if "beside" in rule and not again.agree_beside(ask, line) or "steady" in rule and not again.agree_steadily(ask, line):
            continue
        rule["count"] += 1
        return rule
    return None


def excused_again(programs, line, kind, outcomes):
    """Why a difference without a reason is none, once more is asked: "rounding", "layout" or "write"; or None. The call itself is made
    again, too: libraries of products round by where memory lies."""
    outcomes_again, = both(programs, [line])
    for found in (outcomes, outcomes_again):
        if differs(*found, line) == kind and rounded_alone(programs, [(line, kind, found)], units=True):
            return "rounding"
    if kind.startswith("libtorch refuses the ") and again.needs_no_write(lambda lines: both(programs, lines), line, outcomes[0]):
        return "write"
    if kind in STAGES or kind == "libtorch refuses":
        if again.answers_so(outcomes[0], answers(programs[1], again.other_layouts(line)), line):
            return "layout"
    return None


PLAIN = "add 1-- T:f32:2x3:c:n:1:g T:f32:3:c:n:2"


def rows_of(program):
    """Its rows, if it can make a call at all."""
    tried = subprocess.run([program], input=PLAIN + "\n", capture_output=True, text=True)
    if not tried.stdout.startswith(">ok"):
        raise SystemExit(f"{program} cannot make the call '{PLAIN}' (exit code {tried.returncode}): {tried.stdout}{tried.stderr}")
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
    options.add_argument("--more", default="", choices=("", "wild", "edges", "small", "short", "layouts", "aliases", "guards", "writes"),
                         help="what every call is to be like, which is rare otherwise")
    options.add_argument("--all", action="store_true", help="show the accepted ones, too")
    options.add_argument("--open", action="store_true", help="show the known ones that are to be mended, too")
    options.add_argument("--line")
    options.add_argument("--list", action="store_true")
    options.add_argument("--json")
    options.add_argument("--no-shrink", action="store_true")
    options.add_argument("--counts", action="store_true", help="how often each accepted difference was seen")
    options = options.parse_args()
    programs = (options.tenon, options.libtorch)
    rows, theirs = rows_of(options.tenon), rows_of(options.libtorch)
    if options.list:
        print("\n".join(rows))
        print("libtorch alone: " + ", ".join(sorted(set(theirs) - set(rows))))
        return
    if options.line:
        (a, b), = both(programs, [options.line])
        kind = differs(a, b, options.line)
        print(f"tenon     {shown(a, 4000)}\nlibtorch  {shown(b, 4000)}\n{kind or 'no difference'}"
              + (", rounding" if kind and rounded_alone(programs, [(options.line, kind, (a, b))]) else "")
              + (f", {excused_again(programs, options.line, kind, (a, b))} when asked again" if kind else ""))
        rule = kind and reason_of(programs, accepted_of(HERE / "accepted.toml"), options.line.split(" ")[0], kind, options.line, (a, b))
        if rule:
            print(f"accepted: {rule['reason']}")
        return
    chosen = [name for name in rows if name in theirs and re.search(options.rows, name)]
    if not chosen:
        raise SystemExit(f"no row matches '{options.rows}'")
    rules, found, ran = accepted_of(HERE / "accepted.toml"), {}, collections.Counter()
    print(f"{options.calls} calls of {len(chosen)} rows, seed {options.seed}", flush=True)
    for begin in range(0, options.calls, BATCH):
        numbers_ = range(begin, min(begin + BATCH, options.calls))
        names = [chosen[n % len(chosen)] for n in numbers_]
        lines = [calls.line_of(name, rows[name], options.seed * 1_000_000_007 + n, options.more) for name, n in zip(names, numbers_)]
        batch = []
        for name, line, (a, b) in zip(names, lines, both(programs, lines)):
            ran["refused by both" if " error:call" in a and " error:call" in b else "ran"] += 1
            kind = differs(a, b, line)
            if kind is not None:
                batch.append((name, line, kind, (a, b)))
        rounded = rounded_alone(programs, [entry[1:] for entry in batch])
        for at, (name, line, kind, (a, b)) in enumerate(batch):
            if at in rounded and not options.all:
                ran["rounding"] += 1
                continue
            rule = reason_of(programs, rules, name, kind, line, (a, b))
            if rule is not None and not options.all and not (options.open and rule.get("open", False)):
                continue
            excuse = excused_again(programs, line, kind, (a, b)) if rule is None and not options.all else None
            if excuse:
                ran[excuse] += 1
                continue
            entry = found.setdefault((name, kind), {"count": 0, "line": line, "outcomes": (a, b)})
            entry["count"] += 1
            if len(line) < len(entry["line"]):
                entry |= {"line": line, "outcomes": (a, b)}
        unexplained = sum(entry["count"] for entry in found.values())
        print(f"{numbers_[-1] + 1} of {options.calls} calls, {unexplained} unexplained", file=sys.stderr, flush=True)
    known = lambda still_open: sum(r["count"] for r in rules if r.get("open", False) == still_open)
    print(f"{ran['ran']} ran, {ran['refused by both']} were refused by both; {known(False)} differences are meant, "
          f"{ran['rounding']} are rounding, {ran['layout']} of what libtorch makes of a layout, "
          f"{ran['write']} are writes that Tenon's gradients do not need to refuse, "
          f"{known(True)} known and to be mended, {sum(e['count'] for e in found.values())} unexplained in {len(found)} kinds")
    if options.counts:
        print("\n".join(f"{rule['count']:7} {rule['reason'][:100]}" for rule in rules))
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
