"""Which test cases reach which mutants, and whether one of them notices.

Every case runs once by itself without a mutant: how long it takes, and what it reaches. A mutant is then shown to the cases
that reach it, those of its own layer and quick ones first, many in one process, until one fails or patience ends. Whatever fails in company
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
from xml.etree import ElementTree

# Bottom up. Folders of tests that are not here are about several layers, and always asked. A layer's own tests are in the folder of
# its name, or in the folders and programs named here.
LAYERS = ["core", "memory", "device", "kernel", "plugin", "dispatch", "tensor", "autograd", "ops", "nn", "optim", "data", "runtime",
          "train", "replay", "measure", "report", "cli"]
NEAR = {"kernels": ["tenon_kernel_conformance", "tenon_cpu_test", "ops"], "allocators": ["allocators", "conformance", "schedules"],
        # The kit is tried on allocators, shipped and broken ones; kernels have a harness of their own beside it.
        "conformance": ["tenon_allocator_conformance_test", "tenon_mutants_test"],
        "plugins": ["plugins", "conformance"], "cuda_kernels": ["plugins", "conformance"],
        "memory": ["memory", "schedules", "tenon_attribution_test"],
        "dispatch": ["dispatch", "device"]}  # calls of kernels are tried with the fake driver of tests/device
NOT_ASKED = {"package", "docs", "architecture", "mutate"}  # they build, or read sources
QUICK_S = 0.5
FIRST_S = 1.0  # what the first process of a group takes; each further one GROWTH times as long
GROWTH = 4
SLOW_S = 3.0  # so slow a case is only asked about its own layer
MOST_DATA = 8 << 30  # of one process: a mutant may ask for memory without end


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    label: str
    most_s: float  # CTest's own deadline
    last_s: float = 0  # what it took when ./dev test last ran it


def cases_of(build: Path):
    """The GoogleTest cases as CTest knows them."""
    text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    cases, took = [], {}
    if (build / "junit-release.xml").exists():
        for case in ElementTree.parse(build / "junit-release.xml").iter("testcase"):
            took[case.get("name")] = float(case.get("time", 0))
    for test in json.loads(text)["tests"]:
        command = test.get("command", [])
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        filters = [w for w in command if w.startswith("--gtest_filter=")]
        label = (properties.get("LABELS") or [""])[0]
        if filters and label not in NOT_ASKED and not properties.get("DISABLED"):
            cases.append(Case(filters[0].split("=", 1)[1], command[0], label, float(properties.get("TIMEOUT", 300)),
                              took.get(test["name"], 0)))
    return cases


def asked_of(layer: str, cases, labels, without=()):
    """The cases of the layer and those above it; of these, slow ones and other labels than the chosen ones are left out.
    Those of `without` are not asked at all."""
    below = set(LAYERS[:LAYERS.index(layer)]) if layer in LAYERS else set()
    return [c for c in cases if c.label not in without and (near(layer, c)
            or (c.label not in below and c.last_s <= SLOW_S and (not labels or c.label in labels)))]


def write_whole(file: Path, text: str):
    """Whoever is killed meanwhile leaves what was there."""
    beside = file.with_suffix(".part")
    beside.write_text(text)
    os.replace(beside, file)


def kill_session(child):
    """The child, which leads a session, and all that it started there: tests give programs process groups of their own."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            behind_name = (process / "stat").read_text().rpartition(")")[2].split()
            if int(behind_name[3]) == child.pid:  # state, parent, group, session
                os.kill(int(process.name), signal.SIGKILL)
        except (OSError, IndexError):
            pass  # it has ended meanwhile


class Runner:
    def __init__(self, scratch: Path, jobs: int):
        self.scratch, self.jobs = scratch, jobs
        self.children, self.is_stopped = set(), False
        scratch.mkdir(parents=True, exist_ok=True)

    def all_at_once(self, function, items):
        """Calls function(item) for all, some at a time. Whoever interrupts it ends what is under way, too."""
        pool = ThreadPoolExecutor(self.jobs)
        try:
            list(pool.map(function, items))
        except BaseException:
            self.is_stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(self.children):
                kill_session(child)
            raise
        pool.shutdown()

    def run(self, program, names, environment, cpu_s, wall_s):
        """None if the cases pass, else how the first one failed: (case, "failed", "crashed", "hang" or "late")."""
        if self.is_stopped:
            raise InterruptedError
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        log = folder / "log"

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_DATA, MOST_DATA))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number in (signal.SIGINT, signal.SIGQUIT):  # ignored below a shell's `&`, and tests interrupt programs
                signal.signal(number, signal.SIG_DFL)

        late = False
        with open(log, "wb") as out:
            child = subprocess.Popen([program, "--gtest_filter=" + ":".join(names), "--gtest_fail_fast", "--gtest_color=no"],
                                     cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                     env={**os.environ, "TMPDIR": str(folder), **environment}, start_new_session=True,
                                     preexec_fn=limits)
            self.children.add(child)
            try:
                code = child.wait(wall_s)
            except subprocess.TimeoutExpired:
                late, code = True, -signal.SIGKILL
            kill_session(child)  # and what it left behind
            child.wait()
            self.children.discard(child)
        text = log.read_text(errors="replace")
        shutil.rmtree(folder, ignore_errors=True)
        if code == 0:
            return None
        failed = re.findall(r"(?m)^\[  FAILED  \] ([^\s,]+)", text)
        begun = re.findall(r"(?m)^\[ RUN      \] (\S+)", text)
        if failed and not late and code == 1:
            return failed[0], "failed"
        return (begun[-1] if begun else Path(program).name), "late" if late else "hang" if code == -signal.SIGXCPU else "crashed"


class Reach:
    """Of each case: seconds, what it reaches, or that it fails without any mutant."""

    def __init__(self, runner, file: Path):
        self.runner, self.file = runner, file
        self.known = json.loads(file.read_text()) if file.exists() else {}
        self._lock = threading.Lock()

    @staticmethod
    def _key(case):
        return f"{case.program}:{case.name}"

    def measure(self, cases, stamp_of, say, most_s=0):
        """Runs each case that is not known for its program as it is now; for `most_s` seconds of processor time, if that is given:
        what it reaches is not known then, and it counts as one that fails."""
        is_known = lambda known, case: (known.get("stamp") == stamp_of(case.program)
                                        and not (known["fails"] and known.get("most_s", 0) != most_s))
        todo = [c for c in cases if not is_known(self.entry(c), c)]
        say(f"reach: {len(todo)} cases to run of {len(cases)}")
        done = 0

        def one(case):
            nonlocal done
            handle, file = tempfile.mkstemp(dir=self.runner.scratch)
            os.close(handle)
            begun = time.monotonic()
            outcome = self.runner.run(case.program, [case.name], {"MUTANT_REACH": file}, most_s or case.most_s, case.most_s)
            entry = {"seconds": time.monotonic() - begun, "stamp": stamp_of(case.program), "fails": outcome is not None,
                     "most_s": most_s, "reaches": sorted({int(n) for n in Path(file).read_text().split()})}
            os.unlink(file)
            with self._lock:
                self.known[self._key(case)] = entry
                done += 1
                if done % 100 == 0:
                    say(f"reach: {done} of {len(todo)}")
                    self.save()

        self.runner.all_at_once(one, todo)
        self.save()

    def save(self):
        write_whole(self.file, json.dumps(self.known))

    def entry(self, case):
        return self.known.get(self._key(case), {})


def near(layer, case):
    return bool({case.label, Path(case.program).name} & set(NEAR.get(layer, [layer])))


class Trials:
    def __init__(self, runner, reach, cases, patience_s):
        self.runner, self.reach, self.patience_s = runner, reach, patience_s
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
            groups.setdefault((not near(layer, case), not quick, case.program), []).append(case)
        weight = lambda key: (key[1], key[0], sum(self.reach.entry(c)["seconds"] for c in groups[key]))
        chosen, left_s = [], self.patience_s
        for key in sorted(groups, key=weight):
            cases = []
            for case in groups[key]:
                if key[0]:  # of another layer
                    left_s -= self.reach.entry(case)["seconds"]
                if not key[0] or left_s > 0:
                    cases.append(case)
            chosen += [(key[2], part) for part in self.parts(cases)]
        return chosen

    def parts(self, cases):
        """The cases in processes that grow: those that reach little else first, as they are likely to be about the mutant."""
        parts, most_s, taken_s = [[]], FIRST_S, 0.0
        for case in sorted(cases, key=lambda c: (len(self.reach.entry(c)["reaches"]), self.reach.entry(c)["seconds"])):
            seconds = self.reach.entry(case)["seconds"]
            if parts[-1] and taken_s + seconds > most_s:
                parts.append([])
                most_s, taken_s = most_s * GROWTH, 0.0
            parts[-1].append(case)
            taken_s += seconds
        in_order = {case: i for i, case in enumerate(cases)}
        return [sorted(part, key=in_order.get) for part in parts if part]

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
                alone = [c for c in left if c.name == name]
                if not alone or how == "hang" or self._fails_alone(program, alone, number, how):
                    told = {"failed": "", "crashed": " (crashes)"}.get(how, " (hangs)")
                    return "killed", name + told, count
                left = left[left.index(alone[0]) + 1:]  # it fails in company only: on with the others
        return "survived", "", count

    def _fails_alone(self, program, case, number, how):
        """Again, and where it came late, on a machine that may be busy, only if it comes in time without the mutant."""
        if self._run(program, case, number) is None:
            return False
        return how != "late" or self._run(program, case, 0) is None

    def _run(self, program, cases, number):
        seconds = sum(self.reach.entry(c)["seconds"] for c in cases)
        return self.runner.run(program, [c.name for c in cases], {"MUTANT": str(number)}, 2 * seconds + 5, 8 * seconds + 60)
