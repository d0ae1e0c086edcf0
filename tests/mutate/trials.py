"""Which test cases reach which mutants, and whether one of them notices.

Every case runs once by itself without a mutant: how long it takes, and what it reaches. A mutant is then shown to the cases
that reach it, those of its own layer and quick ones first, many in one process, until one fails. Whatever fails in company
must fail alone, too, or it does not count. A mutant that hangs or dies is noticed.
"""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Bottom up. Folders of tests that are not here are about several layers, and always asked.
LAYERS = ["core", "memory", "device", "kernel", "plugin", "dispatch", "tensor", "autograd", "ops", "nn", "optim", "data", "runtime",
          "train", "replay", "measure", "report", "cli"]
NEAR = {"kernels": ["conformance", "ops"], "allocators": ["allocators", "conformance", "schedules"],
        "plugins": ["plugins", "conformance"], "memory": ["memory", "schedules"]}
NOT_ASKED = {"package", "docs", "architecture", "mutate"}  # they build, or read sources
QUICK_S = 0.5
MOST_DATA = 8 << 30  # of one process: a mutant may ask for memory without end


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    label: str
    most_s: float  # CTest's own deadline


def cases_of(build: Path):
    """The GoogleTest cases as CTest knows them."""
    text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    cases = []
    for test in json.loads(text)["tests"]:
        command = test.get("command", [])
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        filters = [w for w in command if w.startswith("--gtest_filter=")]
        label = (properties.get("LABELS") or [""])[0]
        if filters and label not in NOT_ASKED and not properties.get("DISABLED"):
            cases.append(Case(filters[0].split("=", 1)[1], command[0], label, float(properties.get("TIMEOUT", 300))))
    return cases


def at_or_above(layer: str, cases):
    if layer not in LAYERS:
        return list(cases)
    below = set(LAYERS[:LAYERS.index(layer)])
    return [c for c in cases if c.label not in below]


class Runner:
    def __init__(self, scratch: Path):
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)

    def run(self, program, names, environment, cpu_s, wall_s):
        """None if the cases pass, else how the first one failed: (case, "failed", "crashed" or "hang")."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        log = folder / "log"

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA, MOST_DATA))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        hung = False
        with open(log, "wb") as out:
            child = subprocess.Popen([program, "--gtest_filter=" + ":".join(names), "--gtest_fail_fast", "--gtest_color=no"],
                                     cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                     env={**os.environ, "TMPDIR": str(folder), **environment}, start_new_session=True,
                                     preexec_fn=limits)
            try:
                code = child.wait(wall_s)
            except subprocess.TimeoutExpired:
                hung, code = True, -signal.SIGKILL
            try:
                os.killpg(child.pid, signal.SIGKILL)  # and what it left behind
            except ProcessLookupError:
                pass
            child.wait()
        text = log.read_text(errors="replace")
        shutil.rmtree(folder, ignore_errors=True)
        if code == 0:
            return None
        failed = re.findall(r"(?m)^\[  FAILED  \] ([^\s,]+)", text)
        begun = re.findall(r"(?m)^\[ RUN      \] (\S+)", text)
        if failed and not hung and code == 1:
            return failed[0], "failed"
        return (begun[-1] if begun else Path(program).name), "hang" if hung or code == -signal.SIGXCPU else "crashed"


class Reach:
    """Of each case: seconds, what it reaches, or that it fails without any mutant."""

    def __init__(self, runner, file: Path):
        self.runner, self.file = runner, file
        self.known = json.loads(file.read_text()) if file.exists() else {}
        self._lock = threading.Lock()

    @staticmethod
    def _key(case):
        return f"{case.program}:{case.name}"

    def measure(self, cases, jobs, stamp_of, say):
        """Runs each case that is not known for its program as it is now."""
        todo = [c for c in cases if self.known.get(self._key(c), {}).get("stamp") != stamp_of(c.program)]
        say(f"reach: {len(todo)} cases to run of {len(cases)}")
        done = 0

        def one(case):
            nonlocal done
            handle, file = tempfile.mkstemp(dir=self.runner.scratch)
            os.close(handle)
            begun = time.monotonic()
            outcome = self.runner.run(case.program, [case.name], {"MUTANT_REACH": file}, case.most_s, case.most_s)
            entry = {"seconds": time.monotonic() - begun, "stamp": stamp_of(case.program), "fails": outcome is not None,
                     "reaches": sorted({int(n) for n in Path(file).read_text().split()})}
            os.unlink(file)
            with self._lock:
                self.known[self._key(case)] = entry
                done += 1
                if done % 100 == 0:
                    say(f"reach: {done} of {len(todo)}")
                    self.save()

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, todo))
        self.save()

    def save(self):
        self.file.write_text(json.dumps(self.known))

    def entry(self, case):
        return self.known.get(self._key(case), {})


def near(layer, label):
    return label in NEAR.get(layer, [layer])


class Trials:
    def __init__(self, runner, reach, cases):
        self.runner, self.reach = runner, reach
        self.cases_by_mutant = {}
        for case in cases:
            entry = reach.entry(case)
            if not entry.get("fails"):
                for number in entry.get("reaches", []):
                    self.cases_by_mutant.setdefault(number, []).append(case)

    def batches(self, number, layer):
        """What to run one after the other: (program, cases)."""
        groups = {}
        for case in self.cases_by_mutant.get(number, []):
            quick = self.reach.entry(case)["seconds"] < QUICK_S
            groups.setdefault((not near(layer, case.label), not quick, case.program), []).append(case)
        weight = lambda key: (key[1], key[0], sum(self.reach.entry(c)["seconds"] for c in groups[key]))
        return [(key[2], groups[key]) for key in sorted(groups, key=weight)]

    def try_mutant(self, number, layer):
        """(status, by whom, how many cases reach it)"""
        count = len(self.cases_by_mutant.get(number, []))
        for program, cases in self.batches(number, layer):
            left = list(cases)
            while left:
                outcome = self._run(program, left, number)
                if outcome is None:
                    break
                name, how = outcome
                if how == "hang":
                    return "killed", f"{name} (hangs)", count
                alone = [c for c in left if c.name == name]
                if not alone or self._run(program, alone, number) is not None:
                    return "killed", name + (" (crashes)" if how == "crashed" else ""), count
                left = left[left.index(alone[0]) + 1:]  # it fails in company only: on with the others
        return "survived", "", count

    def _run(self, program, cases, number):
        seconds = sum(self.reach.entry(c)["seconds"] for c in cases)
        return self.runner.run(program, [c.name for c in cases], {"MUTANT": str(number)}, 5 * seconds + 10, 10 * seconds + 60)
