#!/usr/bin/env python3
"""What it costs a compiler to read a framework's main header: processor time and peak memory of `g++ -fsyntax-only`.

  bench/tensor/headers.py [--tenon FRAMEWORK_DIR]... [--libtorch TORCH_DIR] [--rounds 7]

Each --tenon is the folder `framework` of a checkout (this one's where none is given); TORCH_DIR is site-packages/torch of an
installed wheel. Every file holds one include and nothing else. The files take turns; a row has the median and the least of
the rounds. Memory hardly moves between rounds; time does where others use the machine.
"""
import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile


def compile_once(source, include_dirs, compiler):
    """(seconds of processor time, MB at most) of one run."""
    command = [compiler, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in include_dirs), str(source)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    timed = subprocess.run(["/usr/bin/time", "-f", "%M", *command], capture_output=True, text=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if timed.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{timed.stderr[-2000:]}")
    return seconds, int(timed.stderr.split()[-1]) / 1000


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", action="append", type=pathlib.Path, metavar="FRAMEWORK_DIR")
    parser.add_argument("--libtorch", type=pathlib.Path, metavar="TORCH_DIR")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compiler", default="g++")
    options = parser.parse_args()

    frameworks = options.tenon or [here / "framework"]
    rows = [(f"`tenon/tenon.h` of {folder}" if options.tenon else "`tenon/tenon.h`", "tenon/tenon.h", [folder])
            for folder in frameworks]
    rows.append(("the standard headers among them", None, []))
    if options.libtorch:
        include = options.libtorch / "include"
        rows.append(("`torch/torch.h`", "torch/torch.h", [include, include / "torch/csrc/api/include"]))

    with tempfile.TemporaryDirectory() as folder:
        sources = []
        for number, (_, header, include_dirs) in enumerate(rows):
            source = pathlib.Path(folder) / f"{number}.cpp"
            names = [header] if header else standard_headers(frameworks[-1], options.compiler)
            source.write_text("".join(f"#include <{name}>\n" for name in names))
            sources.append((source, include_dirs))
        figures = [[] for _ in rows]
        for _ in range(options.rounds):
            for row, (source, include_dirs) in zip(figures, sources):
                row.append(compile_once(source, include_dirs, options.compiler))

    print("| header | seconds | least | MB |\n|---|---:|---:|---:|")
    for (name, _, _), row in zip(rows, figures):
        seconds = [figure[0] for figure in row]
        print(f"| {name} | {statistics.median(seconds):.2f} | {min(seconds):.2f} | "
              f"{statistics.median(figure[1] for figure in row):.0f} |")


def standard_headers(framework, compiler):
    """The standard headers that Tenon's headers name, as the compiler lists them: their cost is nobody's to save."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write("#include <tenon/tenon.h>\n")
        source.flush()
        listed = subprocess.run([compiler, "-std=c++20", "-H", "-fsyntax-only", f"-I{framework}", source.name],
                                capture_output=True, text=True).stderr
    names = {}
    for line in listed.splitlines():
        path = line.lstrip(".").strip()
        if line.startswith(".") and path.startswith(str(framework)) and path.endswith(".h"):
            for text in pathlib.Path(path).read_text().splitlines():
                if text.startswith("#include <") and "/" not in text and ".h>" not in text:
                    names[text[len("#include <"):text.index(">")]] = None
    return names


if __name__ == "__main__":
    main()
