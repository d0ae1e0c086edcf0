"""`./dev mutate`: see README.md."""
import argparse
import fcntl
import hashlib
import json
import os
import pickle
import re
import signal
import sys
import threading
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Plants small faults and asks which of them the tests notice.")
    parser.add_argument("paths", nargs="*", metavar="PATH",
                        help="layers (memory, ops, kernels …), folders, files, FILE:LINE or FILE:FIRST-LAST; without one: the lines "
                             "that this branch changed")
    parser.add_argument("--mutants", type=int, default=40, metavar="N", help="of each layer (40)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which ones (1)")
    parser.add_argument("--survivors", nargs="+", metavar="FILE", type=Path,
                        help="plants again what survived in earlier runs, wherever it stands now, in place of PATH: what --json wrote, "
                             "or results-table.json of a folder of build/mutate/runs")
    parser.add_argument("--files", type=int, default=0, metavar="N",
                        help="at most of each layer, drawn by length: fewer are read and compiled (all)")
    parser.add_argument("--slow", type=float, default=0, metavar="SECONDS",
                        help="cases that took longer when `./dev test` last ran, or take so much of the processor now, are not asked "
                             "at all (all are)")
    parser.add_argument("--least", type=float, default=90, metavar="PERCENT", help="that must be killed of each layer (90)")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS",
                        help="of tests that a mutant may cost; those of its own layer are always asked (120)")
    parser.add_argument("--tests", type=lambda text: set(text.split(",")), metavar="FOLDER,…",
                        help="folders of tests to ask besides the layer's own, in place of all above it")
    parser.add_argument("--without", type=lambda text: set(text.split(",")), metavar="FOLDER,…", default=set(),
                        help="folders of tests not to ask in this run, the layer's own too: a quick run first, the others then "
                             "are only asked about what is left")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count()), metavar="N", help="compilers, test processes at once")
    parser.add_argument("--list", action="store_true", help="only say which mutants would be planted")
    parser.add_argument("--json", metavar="FILE", help="the results, for programs")
    options = parser.parse_args()
    if options.survivors and options.paths:
        parser.error("--survivors says by itself which lines")
    return options


def equivalent_reason(mutant, known):
    for entry in known:
        if (entry["file"], entry["code"], entry["change"]) == (mutant.file, mutant.code, mutant.change):
            return entry["reason"]
    return None


def planned(root, targets, folder, draw):
    """The mutants of this run: as drawn before, if the sources are the same."""
    import plan
    file, key = folder / "plan.pickle", plan.digest(root, targets)
    if file.exists():
        kept = pickle.loads(file.read_bytes())
        if kept["digest"] == key:
            return kept["mutants"], kept["looked"]
        for old in folder.iterdir():  # of other sources
            old.unlink()
    mutants, looked = draw()
    file.write_bytes(pickle.dumps({"digest": key, "mutants": mutants, "looked": looked}))
    return mutants, looked


def survivors_of(files):
    """The entries of the results, each mutant once."""
    entries = [e for f in files for e in json.loads(f.read_text())["mutants"] if e["status"] == "survived"]
    return list({(e["file"], e["line"], e["code"], e["change"]): e for e in entries}.values())


def wished(root, tree, options):
    """(the run's name, its targets, what makes its mutants)"""
    import plan
    if options.survivors:
        entries = survivors_of(options.survivors)
        targets = [plan.Target(layer, file, ()) for layer, file in sorted({(e["layer"], e["file"]) for e in entries})]
        targets = [t for t in targets if (root / t.file).exists()]
        name = "again-" + hashlib.sha256(repr(entries).encode()).hexdigest()[:16]
        return name, targets, lambda: plan.again(tree, entries, say)
    targets = plan.targets_of(root, options.paths) if options.paths else plan.changed_targets(root)
    name = re.sub(r"[^\w.:-]+", "+", " ".join(options.paths) or "changed")[:150]
    name += f"-{options.seed}-{options.mutants}" + (f"-{options.files}" if options.files else "")
    return name, targets, lambda: plan.draw(tree, targets, options.mutants, options.seed, options.jobs, say, options.files)


def compiled(root, tree, mutants, asked, jobs, folder):
    """Compiles and links all mutants that g++ takes: (what was linked, the mutants it refused)."""
    import built_tree
    import schema
    labels = {case.label for case in asked}
    file = folder / "refused.json"
    numbers = json.loads(file.read_text()) if file.exists() else []
    left, refused = [m for m in mutants if m.number not in numbers], [m for m in mutants if m.number in numbers]
    while True:
        mutated = {name: schema.write((root / name).read_bytes(), [m for m in left if m.file == name]) for name in {m.file for m in left}}
        try:
            return tree.link(tree.compile(mutated, labels, jobs, say), jobs, say), refused
        except built_tree.CompileError as error:
            span = lambda m: range(m.line, m.line + (root / m.file).read_bytes()[m.place.start:m.place.end].count(b"\n") + 1)
            bad = [m for m in left if any(f == m.file and l in span(m) for f, l in error.lines)]
            if not bad:
                raise SystemExit(f"mutate: the mutated sources do not compile:\n{error}")
            say(f"g++ does not take {len(bad)} mutants")
            refused += bad
            file.write_text(json.dumps([m.number for m in refused]))
            left = [m for m in left if m not in bad]


def asked_cases(tree, mutants, options):
    import trials
    cases = trials.cases_of(tree.build)
    wanted = {c for layer in {m.layer for m in mutants} for c in trials.asked_of(layer, cases, options.tests, options.without)}
    return [c for c in cases if c in wanted and not 0 < options.slow < c.last_s]


def tried(tree, mutants, asked, folder, options):
    """Runs the tests; what is known from an earlier run of the same plan and tests is not run again."""
    import trials
    file = folder / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    stamp_of = lambda program: _stamp(tree, program)
    runner = trials.Runner(tree.work / "scratch", options.jobs)
    reach = trials.Reach(runner, folder / "reach.json")
    reach.measure(asked, stamp_of, say, options.slow)
    broken = [c.name for c in asked if reach.entry(c).get("fails")]
    if broken:
        say(f"{len(broken)} cases fail without a mutant, may not run alone or are slow, and are not asked: {', '.join(broken[:5])}"
            + (" …" if len(broken) > 5 else ""))
    all_trials, done, writing = trials.Trials(runner, reach, asked, options.patience), 0, threading.Lock()

    def one(mutant):
        nonlocal done
        of = sorted({(c.program, stamp_of(c.program)) for c in all_trials.cases_by_mutant.get(mutant.number, [])})
        old = results.get(str(mutant.number))
        if old and (old["status"] == "killed" or old["asked"] == repr(of)):
            return
        begun = time.monotonic()
        status, by, count = all_trials.try_mutant(mutant.number, mutant.layer)
        results[str(mutant.number)] = {"status": status, "by": by, "cases": count, "asked": repr(of),
                                       "seconds": round(time.monotonic() - begun, 1)}
        done += 1
        say(f"{mutant.file}:{mutant.line}: {mutant.change}: {status}{' by ' + by if by else ''}")
        with writing:
            trials.write_whole(file, json.dumps(dict(results)))

    runner.all_at_once(one, mutants)
    return results


def _stamp(tree, program):
    kept = tree.kept / os.path.relpath(program, tree.build)
    return (kept if kept.exists() else Path(program)).stat().st_mtime_ns


def report(mutants, refused, results, looked, options):
    """Prints the table; returns it and whether every layer reaches what is asked for."""
    known = tomllib.loads((HERE / "equivalent.toml").read_text()).get("mutant", [])
    rows, every = [], []
    for m in mutants:
        result = {"status": "skipped", "by": "", "cases": 0} if m in refused else results[str(m.number)]
        reason = equivalent_reason(m, known)
        status = "equivalent" if reason and result["status"] == "survived" else result["status"]
        every.append({"layer": m.layer, "file": m.file, "line": m.line, "code": m.code, "change": m.change, "status": status,
                      "by": result["by"], "cases": result["cases"], "reason": reason})
    print(f"{'layer':<12} {'mutants':>7} {'killed':>6} {'survived':>8} {'equivalent':>10} {'killed of the others':>20}")
    enough = True
    for layer in sorted({m.layer for m in mutants}):
        count = lambda status: sum(e["layer"] == layer and e["status"] == status for e in every)
        killed, survived, equivalent = count("killed"), count("survived"), count("equivalent")
        percent = 100 * killed / (killed + survived) if killed + survived else 100.0
        enough &= percent >= options.least
        rows.append({"layer": layer, "mutants": killed + survived + equivalent, "killed": killed, "survived": survived,
                     "equivalent": equivalent, "percent": round(percent, 1), "places": looked[layer][0],
                     "hidden_by_macros": looked[layer][1], "refused": looked[layer][2] + count("skipped")})
        print(f"{layer:<12} {killed + survived + equivalent:>7} {killed:>6} {survived:>8} {equivalent:>10} {percent:>18.1f} %")
    for entry in every:
        if entry["status"] == "survived":
            reached = f"{entry['cases']} cases reach it" if entry["cases"] else "no case reaches it"
            print(f"\n{entry['file']}:{entry['line']}: {entry['change']} ({reached})\n    {entry['code']}")
    return {"schema_version": 1, "seed": options.seed, "layers": rows, "mutants": every}, enough


def main():
    options = arguments()
    root = HERE.parent.parent
    try:
        import plan
        import places  # noqa: F401  it is what needs clang
        import built_tree
        import trials  # noqa: F401
    except ImportError:
        raise SystemExit("mutate: clang's library for Python is missing: apt-get install python3-clang-14, and use /usr/bin/python3")
    work = root / "build" / "mutate"
    work.mkdir(parents=True, exist_ok=True)
    tree = built_tree.BuiltTree(root, work)
    if not options.list:  # which only reads
        lock = open(work / "lock", "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit("mutate: another run is under way in this tree")
        tree.restore()
    name, targets, draw = wished(root, tree, options)
    folder = work / "runs" / name
    folder.mkdir(parents=True, exist_ok=True)
    mutants, looked = planned(root, targets, folder, draw)
    if not mutants:
        raise SystemExit("mutate: nothing to mutate there")
    if options.list:
        for m in mutants:
            print(f"{m.number:>4} {m.file}:{m.line}: {m.change}\n       {m.code}")
        return
    # From here on there is something to put back. Not before: the readers of plan.draw() would inherit it, who are ended by
    # this signal, and one that is about to take its next file then waits for its own lock without end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    asked = asked_cases(tree, mutants, options)
    linked, refused = compiled(root, tree, mutants, asked, options.jobs, folder)
    try:
        tree.install(linked)
        results = tried(tree, [m for m in mutants if m not in refused], asked, folder, options)
    finally:
        tree.restore()
    table, enough = report(mutants, refused, results, looked, options)
    (folder / "results-table.json").write_text(json.dumps(table, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(table, indent=1))
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    main()
