"""The built tree that mutants are put into: which objects a source goes into, how they are compiled and linked.

Nothing of a checkout's sources is changed: the mutated ones are compiled in a copy of the sources (build/mutate/tree), and
what is linked from them takes the place of libtenon, a plugin or a program in build/release while the tests run. What stood
there is kept in build/mutate/kept and put back at the end, or by the next `./dev` after a run that was killed.
"""
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HEADER_MOST = 12  # units that may include a mutated header: others would compile half the library anew
COPIED = ("framework", "allocators", "plugins", "tests", "compat", "fuzz", "bench")


@dataclass(frozen=True)
class Unit:
    """One object: its sources are several in a unity build."""
    object: str  # relative to the build folder
    file: str
    command: tuple
    sources: tuple  # relative to the root


class CompileError(Exception):
    """What the compiler said; `lines` are the (source, line) it pointed at."""

    def __init__(self, text, lines):
        super().__init__(text)
        self.lines = lines


def stamp(file: Path):
    """What tells a file from what it was: a checkout may give another text the same time."""
    return file.stat().st_mtime_ns, file.stat().st_size


def is_asked(object: str, labels) -> bool:
    first, second = (object.split("/") + [""])[:2]
    return second in labels if first == "tests" else first not in ("bench", "fuzz", "examples")


class BuiltTree:
    def __init__(self, root: Path, work: Path, preset="release"):
        self.root, self.build, self.work = root, root / "build" / preset, work
        self.copy, self.kept = work / "tree", work / "kept"
        self.units = self._read_units()
        self._by_source = {}
        for unit in self.units:
            for source in unit.sources:
                self._by_source.setdefault(source, []).append(unit)
        self._dependents = None

    # --- what is built of what ---

    def _read_units(self):
        units = []
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            file = Path(entry["file"])
            sources = [file]
            if "/Unity/" in entry["file"]:
                sources = [Path(p) for p in re.findall(r'#include "([^"]+)"', file.read_text())]
            inside = tuple(str(s.relative_to(self.root)) for s in sources if s.is_relative_to(self.root))
            command = tuple(shlex.split(entry["command"]))
            output = os.path.relpath(Path(entry["directory"]) / command[command.index("-o") + 1], self.build)
            units.append(Unit(output, entry["file"], command, inside))
        return units

    def dependents(self, header: str):
        """The units that include a header, as ninja knows from the last build."""
        if self._dependents is None:
            self._dependents, by_object, unit = {}, {u.object: u for u in self.units}, None
            text = subprocess.run(["ninja", "-C", self.build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
            for line in text.splitlines():
                if not line.startswith(" "):
                    unit = by_object.get(line.split(":")[0])
                elif unit and line.strip().startswith(str(self.root)):
                    path = os.path.relpath(line.strip(), self.root)
                    if not path.startswith("build/"):
                        self._dependents.setdefault(path, []).append(unit)
        return self._dependents.get(header, [])

    def units_of(self, source: str):
        """Of a header that very many units include, those of its own layer's tests."""
        if source.endswith(".cpp"):
            return self._by_source.get(source, [])
        units = self.dependents(source)
        if self.is_wide(source):
            layer = source.removeprefix("framework/tenon/").split("/")[0]
            units = [u for u in units if u.object.startswith(f"tests/{layer}/")]
        return units

    def is_wide(self, source: str):
        return not source.endswith(".cpp") and len(self.dependents(source)) > HEADER_MOST

    def is_built(self, source: str):
        return bool(self.units_of(source))

    def parse_arguments(self, source: str):
        """What clang's library needs to read the source as the library's or plugin's own object has it."""
        units = self.units_of(source)
        unit = min(units, key=lambda u: u.object.startswith("tests/"))
        kept, arguments = [], list(unit.command[1:])
        for i, word in enumerate(arguments):
            if re.match(r"-(I|D|std=)", word):
                kept.append(word)
            elif word == "-isystem":
                kept += [word, arguments[i + 1]]
        return kept

    # --- compiling ---

    def refresh_copy(self):
        """The copy has what the checkout has."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *COPIED], cwd=self.root,
                                capture_output=True, text=True, check=True).stdout.split("\n")
        for name in filter(None, listed):
            source, copy = self.root / name, self.copy / name
            if source.is_file() and re.search(r"\.(h|cpp|inl|cu|cuh)$", name):
                if not copy.exists() or stamp(copy) != stamp(source):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, copy)

    def compile(self, mutated: dict, labels, jobs: int, say):
        """Compiles every object that has one of the sources {name: text}; returns {object: file}. Of the tests, which compile some
        sources a second time, those in the folders `labels`."""
        self.refresh_copy()
        for name, text in mutated.items():
            target = self.copy / name
            target.write_bytes(text)
            os.utime(target, ns=(0, 0))  # the next refresh copies it anew
        units = {u.object: u for name in mutated for u in self.units_of(name) if is_asked(u.object, labels)}
        objects, errors = {}, []

        def one(unit):
            try:
                objects[unit.object] = self._compile(unit, mutated)
            except CompileError as error:
                errors.append(error)

        say(f"compiling {len(units)} objects")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, units.values()))
        if errors:
            raise CompileError("\n".join(map(str, errors)), {line for e in errors for line in e.lines})
        return objects

    def _compile(self, unit, mutated):
        out = self.work / "objects" / unit.object
        out.parent.mkdir(parents=True, exist_ok=True)
        command, file = self._command(unit, out)
        has = [n for n in sorted(mutated) if unit in self.units_of(n)]
        built = (self.build / unit.object).stat().st_mtime_ns
        key = hashlib.sha256(repr((command, built, [(n, mutated[n]) for n in has])).encode()).hexdigest()
        key += hashlib.sha256((Path(__file__).parent / "switch.h").read_bytes()).hexdigest()
        mark = out.with_suffix(".key")
        if out.exists() and mark.exists() and mark.read_text() == key:
            return out
        ran = subprocess.run(command, cwd=self.build, capture_output=True, text=True)
        if ran.returncode != 0:
            pointed = re.findall(r"(?m)" + re.escape(str(self.copy)) + r"/([^:\s]+):(\d+)", ran.stderr)
            raise CompileError(ran.stderr[:4000], {(name, int(line)) for name, line in pointed if name in mutated})
        mark.write_text(key)
        return out

    def _command(self, unit, out):
        """The unit's own command, its sources and headers taken from the copy, without -O3: nothing is timed."""
        old, new = str(self.root) + "/", str(self.copy) + "/"
        move = lambda path: path if path.startswith(str(self.build)) else path.replace(old, new, 1)
        file = unit.file
        if "/Unity/" in file:
            joined = self.work / "unity" / unit.object.replace("/", "+")
            joined = joined.with_suffix(".cpp")
            joined.parent.mkdir(parents=True, exist_ok=True)
            joined.write_text("".join(f'#include "{self.copy / s}"\n' for s in unit.sources))
            file = str(joined)
        else:
            file = move(file)
        words = []
        for word in unit.command:
            if word == unit.file:
                word = file
            elif word.startswith("-I"):
                word = "-I" + move(word[2:])
            elif word == unit.object or word.endswith("/" + unit.object):
                word = str(out)
            elif word.startswith(old + "tests/support") or word.startswith("-fmacro-prefix-map="):
                word = word.replace(old, new)
            elif word == "-O3":
                word = "-O1"
            words.append(word)
        at = words.index("-o")
        words[at + 1] = str(out)
        return words[:1] + ["-w", "-include", str(Path(__file__).parent / "switch.h")] + words[1:], file

    # --- linking ---

    def link(self, objects: dict, jobs: int, say):
        """Links everything that has one of the objects, in a static library too; returns {output: file}, outputs relative to the
        build folder."""
        objects = {**objects, **self._archives(objects)}
        outputs = sorted({o for name in objects for o in self._made_of(name) if not o.endswith(".a")})
        say(f"linking {', '.join(outputs)}")
        with ThreadPoolExecutor(jobs) as pool:
            return dict(zip(outputs, pool.map(lambda o: self._link(o, objects), outputs)))

    def _query(self, name):
        return subprocess.run(["ninja", "-C", self.build, "-t", "query", name], capture_output=True, text=True, check=True).stdout

    def _made_of(self, name):
        """What is linked from it directly, and was built: libraries, plugins, programs."""
        found = [line.strip() for line in self._query(name).split("outputs:")[-1].splitlines() if line.strip()]
        return [f for f in dict.fromkeys(found) if (self.build / f).is_file() and not f.startswith(("bench/", "fuzz/", "examples/"))]

    def _archives(self, objects):
        """The static libraries that have one of the objects, made anew with it."""
        made = {}
        for archive in sorted({o for name in objects for o in self._made_of(name) if o.endswith(".a")}):
            inputs = self._query(archive).split("input:")[1].split("outputs:")[0].splitlines()
            members = [m.strip() for m in inputs if m.strip().endswith(".o")]
            made[archive] = self.work / "linked" / archive
            made[archive].parent.mkdir(parents=True, exist_ok=True)
            made[archive].unlink(missing_ok=True)
            subprocess.run(["ar", "qcs", made[archive], *[str(objects.get(m, m)) for m in members]], cwd=self.build, check=True)
        return made

    def _link(self, output, objects):
        text = subprocess.run(["ninja", "-C", self.build, "-t", "commands", "-s", output], capture_output=True, text=True,
                              check=True).stdout
        text = next(part for part in text.split("&&") if " -o " in part)
        out = self.work / "linked" / output
        out.parent.mkdir(parents=True, exist_ok=True)
        words = [str(objects[w]) if w in objects else w for w in shlex.split(text)]
        words[words.index("-o") + 1] = str(out)
        own = self.kept / output if (self.kept / output).exists() else self.build / output
        made_of = [(w, (self.build / w).stat().st_mtime_ns) for w in words if w in map(str, objects.values())]
        key, mark = repr((words, made_of, own.stat().st_mtime_ns)), out.with_name(out.name + ".key")
        if not out.exists() or not mark.exists() or mark.read_text() != key:  # another run's is no older
            mark.unlink(missing_ok=True)
            subprocess.run(words, cwd=self.build, check=True)
            mark.write_text(key)
        return out

    # --- in place of what was built ---

    def install(self, linked: dict):
        for output, file in linked.items():
            place, kept = self.build / output, self.kept / output
            kept.parent.mkdir(parents=True, exist_ok=True)
            if not kept.exists():
                os.link(place, kept)
            beside = place.with_name(place.name + ".mutants")
            shutil.copy2(file, beside)
            os.replace(beside, place)

    def restore(self):
        for kept in [p for p in self.kept.rglob("*") if p.is_file()]:
            os.replace(kept, self.build / kept.relative_to(self.kept))
        shutil.rmtree(self.kept, ignore_errors=True)
