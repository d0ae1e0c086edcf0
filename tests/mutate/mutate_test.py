"""The tool's own tests: python3 mutate_test.py. They need clang's library, not a built tree."""
import json
import signal
import sys
import tempfile
import time
import tomllib
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    from clang import cindex
    cindex.Config().lib
except Exception as reason:  # of several kinds: no module, no library
    print(f"python3-clang-14 is not installed ({type(reason).__name__})")
    sys.exit(77)
import built_tree
import mutate
import places
import plan
import rows
import schema
import trials


def planted_in(code, *arguments):
    """The places of a source, as (change, the source with it)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sample.cpp"
        file.write_text(code)
        unit = cindex.Index.create().parse(str(file), ["-std=c++20", "-w", *arguments], options=places.READ_WITH)
        assert not plan.errors(unit), plan.errors(unit)
        found, hidden = places.find(unit, code.encode())
        return found, hidden


def changes(code):
    return [p.change for p in planted_in(code)[0]]


def mutated(code, change):
    place = next(p for p in planted_in(code)[0] if p.change == change)
    return schema.apply(code.encode(), place).decode()


class PlacesTest(unittest.TestCase):
    def test_a_comparison_is_moved_and_turned(self):
        self.assertEqual(changes("bool f(int a, int b) { return a < b; }"), ["< -> <=", "< -> >=", "return: negated"])
        self.assertEqual(mutated("bool f(int a, int b) { return a < b; }", "< -> <="), "bool f(int a, int b) { return a <= b; }")

    def test_a_condition_always_or_never_holds(self):
        self.assertEqual(mutated("int f(int* p) { if (p) { return *p; } return {}; }", "if (false)"),
                         "int f(int* p) { if (false) { return *p; } return {}; }")

    def test_the_condition_behind_an_initializer_is_found(self):
        self.assertIn("if (true)", changes("int f(int x) { if (int y = x; y) { return x; } return {}; }"))

    def test_a_declared_condition_is_left_alone(self):
        self.assertNotIn("if (true)", changes("int f(int x) { if (int y = x) { return y; } return {}; }"))

    def test_a_namespace_that_the_command_line_names_is_entered(self):
        code = "namespace n::LEVEL { int f(int a, int b) { return a * b; } }"
        self.assertEqual([p.change for p in planted_in(code, "-DLEVEL=sse2")[0]], ["* -> /"])

    def test_each_side_of_an_and_stands_alone(self):
        self.assertEqual(mutated("bool f(bool a, bool b) { return a && b; }", "left of && alone"),
                         "bool f(bool a, bool b) { return static_cast<bool>(a); }")

    def test_a_side_that_is_made_of_truth_values_is_one_itself(self):
        """Behind a switch both branches have one type: an optional of the number that a false is made of would hold."""
        code = ("struct May { May(int); explicit operator bool() const; };\n"
                "int f(bool a, May b) { if (a && b) { return 1; } return {}; }")
        self.assertIn("if (static_cast<bool>(b))", mutated(code, "right of && alone"))

    def test_a_statement_is_dropped_but_no_declaration(self):
        self.assertEqual([c for c in changes("void g(); void f() { int x = {}; g(); }") if c.startswith("dropped")], ["dropped: g()"])

    def test_arguments_of_one_type_are_swapped(self):
        code = "int g(int, int, float); int f(int a, int b) { return g(a, b, {}); }"
        self.assertEqual(mutated(code, "arguments 1 and 2 of g swapped"), code.replace("g(a, b", "g(b, a"))

    def test_arguments_of_a_minimum_are_not_swapped(self):
        self.assertEqual(changes("int min(int, int); int f(int a, int b) { return min(a, b); }"), [])

    def test_what_a_macro_writes_is_left_alone_and_counted(self):
        found, hidden = planted_in("#define LESS(a, b) ((a) < (b))\nint f(int a, int b) { return LESS(a, b); }")
        self.assertEqual((found, hidden), ([], 1))

    def test_what_is_decided_when_compiling_is_left_alone(self):
        self.assertEqual(changes("template <int N> int g(); int f() { constexpr int k = 3; static_assert(k < 4); int a[5]; "
                                 "return g<6>() ; }"), [])

    def test_a_condition_that_is_decided_when_compiling_neither_always_nor_never_holds(self):
        code = "template <bool B> int f(int a) { if constexpr (B) { return a; } else if constexpr (!B) { return a * a; } return {}; }"
        self.assertEqual(changes(code), ["* -> /"])

    def test_a_file_that_is_included_in_the_middle_is_not_taken_for_this_one(self):
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "part.inl"
            part.write_text("inline int part(int a) { return a + 1; }\n")
            found, _ = planted_in(f'namespace n {{\n#include "{part}"\nint own(int a) {{ return a * part(a); }}\n}}')
        self.assertEqual([p.change for p in found], ["* -> /"])

    def test_a_constant_grows_by_name_too(self):
        self.assertEqual(changes("constexpr int kMost = 3; int f() { return kMost; }"), ["kMost + 1"])

    def test_places_never_overlap_by_half(self):
        found, _ = planted_in("int g(int, int); int f(int a, int b) { if (a < b && !(b == 3)) { a += g(a + 1, b); } return a ? b : -a; }")
        for p in found:
            for q in found:
                self.assertTrue(p.end <= q.start or q.end <= p.start or (p.start <= q.start and q.end <= p.end)
                                or (q.start <= p.start and p.end <= q.end), (p, q))


class RowsTest(unittest.TestCase):
    ROW = b"// TENON_UNARY(no, row)\nTENON_UNARY(Some, some, kInput, kSigned, kSame, x < T(0) ? f(-x, y) : T(0.5),\n  -y, -2, 2, {-1.5, 1e-3})\n"

    def test_a_formula_is_changed_and_what_it_is_checked_with_is_not(self):
        found = rows.find(self.ROW)
        self.assertEqual([p.change for p in found], ["< -> <=", "< -> >=", "- dropped", "0 + 1", "0.5 * 2", "- dropped"])
        self.assertEqual(found[0].text, b"x <= T(0) ? f(-x, y) : T(0.5)")
        self.assertEqual(found[2].text, b"x < T(0) ? f(x, y) : T(0.5)")
        self.assertEqual(schema.apply(self.ROW, found[5]), self.ROW.replace(b"  -y", b"  y"))

    def test_the_rows_of_the_tree_have_formulas_of_every_kind(self):
        folder = HERE.parent.parent / "framework/tenon/kernel/rows"
        for file in folder.glob("*.inl"):
            source = file.read_bytes()
            for kind in {m[1] for m in rows.ROW.finditer(source)}:
                self.assertIn(kind, rows.FORMULAS)
            self.assertGreater(len(rows.find(source)), 20, file)


class PartsTest(unittest.TestCase):
    class Known:
        """Of a case named S:R it is known that it takes S seconds and reaches R mutants."""

        def entry(self, case):
            seconds, reached = case.name.split(":")
            return {"seconds": float(seconds), "reaches": list(range(int(reached)))}

    def test_cases_that_reach_little_else_are_run_first_and_processes_grow(self):
        cases = [trials.Case(name, "p", "ops", 1) for name in ("0.9:9", "0.4:1", "0.5:2", "3:5", "2:8")]
        parts = trials.Trials(None, self.Known(), [], 0).parts(cases)
        self.assertEqual([[c.name for c in part] for part in parts], [["0.4:1", "0.5:2"], ["3:5"], ["0.9:9", "2:8"]])


class RunnerTest(unittest.TestCase):
    def outcome_of(self, script):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"
            program.write_text("#!/bin/sh\n" + script)
            program.chmod(0o755)
            return trials.Runner(Path(folder) / "scratch", 1).run(program, ["A.B"], {}, 20, 20)

    def test_what_a_program_leaves_behind_ends_with_it_in_a_group_of_its_own_too(self):
        with tempfile.NamedTemporaryFile("r") as file:
            self.assertIsNone(self.outcome_of(f"set -m\nsleep 60 &\necho $! >{file.name}\n"))
            stat = Path(f"/proc/{int(file.read())}/stat")
        ends = time.monotonic() + 20
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
            self.assertLess(time.monotonic(), ends)
            time.sleep(0.01)

    def test_programs_may_be_interrupted_where_the_tool_may_not(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.assertEqual(self.outcome_of("kill -INT $$\nexit 0\n"), ("program", "crashed"))
        finally:
            signal.signal(signal.SIGINT, before)


class ReachTest(unittest.TestCase):
    class Asked:
        """A program that reaches mutant 7, and takes three seconds of processor time for the case "slow"."""

        def __init__(self, folder):
            self.scratch, self.ran = folder, []

        def all_at_once(self, function, items):
            for item in items:
                function(item)

        def run(self, program, names, environment, cpu_s, wall_s):
            self.ran += names
            Path(environment["MUTANT_REACH"]).write_text("7\n")
            return (names[0], "hang") if names == ["slow"] and cpu_s < 3 else None

    def test_a_case_that_was_too_slow_is_asked_again_by_who_has_more_time(self):
        cases = [trials.Case(name, "p", "ops", 60) for name in ("quick", "slow")]
        with tempfile.TemporaryDirectory() as folder:
            asked = self.Asked(folder)
            reach = trials.Reach(asked, Path(folder) / "reach.json")
            for most_s, fails in ((2, True), (2, True), (0, False), (0, False)):
                reach.measure(cases, lambda program: 1, lambda text: None, most_s)
                self.assertEqual((reach.entry(cases[0])["reaches"], reach.entry(cases[1])["fails"]), ([7], fails))
            self.assertEqual(asked.ran, ["quick", "slow", "slow"])


class SchemaTest(unittest.TestCase):
    CODE = "int g(int, int);\nint f(int a, int b) {\n  if (a <\n      b) { a += g(a + 1, b); }\n  return a;\n}\n"

    def test_every_mutant_of_a_source_compiles_at_once_and_keeps_its_line(self):
        found, _ = planted_in(self.CODE)
        text = schema.write(self.CODE.encode(), [schema.Planted(i + 1, p) for i, p in enumerate(found)]).decode()
        self.assertEqual(text.count("\n"), self.CODE.count("\n"))
        for i in range(len(found)):
            self.assertEqual(text.count(f"tenon_mutants::on({i + 1})"), 1)
        planted_in((HERE / "switch.h").read_text().replace("#pragma once", "") + text)  # it compiles

    def test_without_mutants_the_source_stays(self):
        self.assertEqual(schema.write(self.CODE.encode(), []).decode(), self.CODE)


class TargetsTest(unittest.TestCase):
    def test_a_layer_a_folder_and_lines_are_understood(self):
        root = HERE.parent.parent
        self.assertTrue(all(t.layer == "autograd" for t in plan.targets_of(root, ["autograd"])))
        self.assertEqual(plan.targets_of(root, ["framework/tenon/autograd/node.cpp:3-9"])[0].lines, ((3, 9),))
        self.assertEqual({t.layer for t in plan.targets_of(root, ["kernels"])}, {"kernels"})
        plugins = plan.targets_of(root, ["plugins"])  # without those that are layers by themselves
        self.assertEqual({t.layer for t in plugins}, {"plugins"})
        self.assertEqual({t.file.split("/")[1] for t in plugins}, {"cpu", "cuda", "meta", "simulated"})
        self.assertFalse([t.file for t in plugins if "/kernels/" in t.file])
        self.assertEqual({t.layer for t in plan.targets_of(root, ["mpi", "plugins/nccl", "plugins/cuda/kernels"])},
                         {"mpi", "nccl", "cuda_kernels"})

    def test_an_unknown_layer_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "no layer, folder or file 'opps'"):
            plan.targets_of(HERE.parent.parent, ["opps"])

    def test_tests_below_a_layer_are_not_asked(self):
        cases = [trials.Case("A.B", "p", label, 1) for label in ("memory", "ops", "cli", "schedules")]
        self.assertEqual([c.label for c in trials.asked_of("ops", cases, None)], ["ops", "cli", "schedules"])

    def test_a_second_copy_of_a_source_is_compiled_where_its_tests_are_asked(self):
        objects = ["framework/a.o", "tests/memory/a.o", "tests/fuzz/a.o", "bench/a.o"]
        self.assertEqual([o for o in objects if built_tree.is_asked(o, {"memory"})], objects[:2])

    def test_slow_tests_are_asked_about_their_own_layer_only(self):
        cases = [trials.Case("A.B", "p", label, 1, 100) for label in ("ops", "nn")]
        self.assertEqual([c.label for c in trials.asked_of("ops", cases, None)], ["ops"])

    def test_only_chosen_folders_of_tests_are_asked_besides_the_own_one(self):
        cases = [trials.Case("A.B", "p", label, 1) for label in ("ops", "nn", "cli")]
        self.assertEqual([c.label for c in trials.asked_of("ops", cases, {"nn"})], ["ops", "nn"])

    def test_a_folder_may_be_left_out_though_it_is_the_layers_own(self):
        cases = [trials.Case("A.B", "p", label, 10, 0) for label in ("allocators", "conformance", "nn")]
        self.assertEqual([c.label for c in trials.asked_of("allocators", cases, {"nn"}, {"conformance"})], ["allocators", "nn"])


class AgainTest(unittest.TestCase):
    BEFORE = "int f(int a) {\n  return a + 1;\n}\nint g(int a) {\n  return a + 1;\n}\n"

    def named(self, code, entries):
        """The lines of the places that the entries name now, and the changes of those that name none."""
        places_now, gone = plan.where_now(code.encode(), planted_in(code)[0], entries)
        return ([plan.line_of(code.encode(), p)[0] for p in places_now], [e["change"] for e in gone])

    def test_a_survivor_is_found_where_its_line_has_moved_to(self):
        entry = {"line": 5, "code": "return a + 1;", "change": "+ -> -"}
        self.assertEqual(self.named(self.BEFORE, [entry]), ([5], []))
        self.assertEqual(self.named("// one\n// two\n" + self.BEFORE, [entry]), ([4], []))  # of equal lines the nearest
        self.assertEqual(self.named("// one\n" * 4 + self.BEFORE.replace("a + 1", "a - 1", 1), [entry]), ([9], []))

    def test_a_survivor_whose_line_is_written_otherwise_is_gone(self):
        entries = [{"line": 2, "code": "return a + 1;", "change": c} for c in ("+ -> -", "* -> /")]
        self.assertEqual(self.named(self.BEFORE.replace("a + 1", "a * 2"), entries), ([], ["+ -> -", "* -> /"]))
        self.assertEqual(self.named(self.BEFORE, entries), ([2], ["* -> /"]))

    def test_of_several_results_only_what_survived_is_planted_again_and_once(self):
        entry = {"file": "a.cpp", "line": 1, "code": "x", "change": "0 + 1"}
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("a.json", "b.json")]
            files[0].write_text(json.dumps({"mutants": [{**entry, "status": "survived"}, {**entry, "line": 2, "status": "killed"}]}))
            files[1].write_text(json.dumps({"mutants": [{**entry, "status": "survived"}, {**entry, "line": 3, "status": "equivalent"}]}))
            self.assertEqual([e["line"] for e in mutate.survivors_of(files)], [1])


class EquivalentsTest(unittest.TestCase):
    KNOWN = tomllib.loads((HERE / "equivalent.toml").read_text())["mutant"]

    def test_each_stands_for_a_line_of_its_file(self):
        root, lines, gone = HERE.parent.parent, {}, []
        for entry in self.KNOWN:
            file = entry["file"]
            if file not in lines:
                text = (root / file).read_text() if (root / file).exists() else ""
                lines[file] = {line.strip() for line in text.split("\n")}
            if entry["code"] not in lines[file]:
                gone.append(f"{file}: {entry['change']}: {entry['code']}")
        self.assertFalse(gone, "make them match the lines as they are now, or drop them:\n" + "\n".join(gone))

    def test_each_is_listed_once_and_says_why(self):
        seen = set()
        for entry in self.KNOWN:
            key = (entry["file"], entry["code"], entry["change"])
            self.assertNotIn(key, seen)
            seen.add(key)
            self.assertTrue(entry["reason"].strip(), key)


if __name__ == "__main__":
    unittest.main()
