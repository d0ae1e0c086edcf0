#!/usr/bin/env python3
"""What scopes cost while nobody listens: two builds of the same tree, one of which does not ask.

  cmake --preset release -B build/without-scopes -DCMAKE_CXX_FLAGS="-ffunction-sections -DTENON_WITHOUT_SCOPES"
  cmake --preset release -B build/with-scopes -DCMAKE_CXX_FLAGS=-ffunction-sections
  for build in build/without-scopes build/with-scopes; do
    cmake --build $build --target tenon_tensor_overhead tenon_profiler_off_cost
    rm -rf $build/lib/tenon && ln -s ../../release/lib/tenon $build/lib/tenon   # the same kernels and allocators
  done
  bench/profiler/off_cost.py build/without-scopes build/with-scopes [--layouts 16] [--rounds 5]

Instructions are counted by valgrind (callgrind) and the same in every run: what 10,000 more turns take, divided.
Times are those of tenon_tensor_overhead on one core. Where the linker lays the code moves them by some per cent either
way, more than what is measured: so each build's library is linked as often as --layouts says, its functions in another
random order each time (ld.lld --shuffle-sections), and all these run in turn, --rounds times. A layout's time is its
fastest round. The ratio is that of the medians over the layouts; its interval, of 95 %, comes of drawing layouts anew
(bootstrap), and "a layout moves it" is half of what lies between the quartiles of one build's layouts.

Where others share the machine, its pace changes by more than that from second to second. "Pairs" is the median ratio of
two runs that came one right behind the other, with the interval of drawing layouts anew: what is slow for both drops out.
"""
import argparse
import csv
import os
import pathlib
import random
import statistics
import subprocess
import tempfile

PROGRAMS = ["empty", "add", "add_recorded", "select", "chain"]
FEW, MANY = 2000, 12000
LIBRARY, SONAME = "libtenon.so.0.1.0", "libtenon.so.0.1"


def instructions(build, program):
    counts = []
    for times in (FEW, MANY):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                 build / "bench/profiler/tenon_profiler_off_cost", program, str(times)],
                capture_output=True, text=True, check=True, env={**os.environ, "LD_LIBRARY_PATH": str(build / "lib")})
        counts.append(int(run.stderr.split("Collected :")[1].split()[0]))
    return (counts[1] - counts[0]) / (MANY - FEW)


def relinked(build, folder, seed):
    """A folder with the build's library, its sections in an order of their own, and its plugins beside it."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "lib/" + LIBRARY], capture_output=True, text=True,
                              check=True).stdout
    link = next(line for line in commands.splitlines()[::-1] if f"-o lib/{LIBRARY}" in line)
    link = link[link.index("/"):].split(" && ")[0]  # ": && c++ … && :"
    library = folder / "lib"
    library.mkdir(parents=True)
    link = link.replace(f"-o lib/{LIBRARY}", f"-fuse-ld=lld -Wl,--shuffle-sections=.text*={seed} -o {library / LIBRARY}")
    subprocess.run(link, shell=True, cwd=build, check=True)
    (library / SONAME).symlink_to(LIBRARY)
    (library / "tenon").symlink_to((build / "lib/tenon").resolve())
    return library


def times(build, library):
    run = subprocess.run(
        ["taskset", "-c", "1", build / "bench/tensor/tenon_tensor_overhead", "--benchmark_format=csv",
         "--benchmark_min_time=0.05"],
        capture_output=True, text=True, check=True, env={**os.environ, "LD_LIBRARY_PATH": str(library)})
    rows = csv.DictReader(run.stdout[run.stdout.index("name,"):].splitlines())
    return {row["name"]: float(row["cpu_time"]) for row in rows}


def interval(draw, draws=4000):
    """Of 95 %, of what `draw(generator)` gives."""
    generator = random.Random(1)
    drawn = sorted(draw(generator) for _ in range(draws))
    return drawn[draws // 40], drawn[-draws // 40]


def again(generator, values):
    return generator.choices(values, k=len(values))


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / middle


def compare_times(builds, layouts, rounds):
    fastest = {}  # (build, benchmark) -> by layout
    pairs = {}  # benchmark -> by layout, ratios of runs one behind the other
    with tempfile.TemporaryDirectory() as folder:
        libraries = [[relinked(build, pathlib.Path(folder) / f"{number}-{seed}", seed + 1) for seed in range(layouts)]
                     for number, build in enumerate(builds)]
        for turn in range(rounds):
            for layout in range(layouts):
                pair = {}
                for number in ((0, 1) if (turn + layout) % 2 == 0 else (1, 0)):
                    pair[number] = times(builds[number], libraries[number][layout])
                    for name, time in pair[number].items():
                        of_layouts = fastest.setdefault((number, name), [float("inf")] * layouts)
                        of_layouts[layout] = min(of_layouts[layout], time)
                for name, time in pair[0].items():
                    pairs.setdefault(name, [[] for _ in range(layouts)])[layout].append(pair[1][name] / time)
    print("\n| benchmark | without, median | with, median | ratio | 95 % | a layout moves it | pairs | 95 % |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in [name for number, name in fastest if number == 0]:
        without, with_scopes = fastest[0, name], fastest[1, name]
        low, high = interval(lambda generator: statistics.median(again(generator, with_scopes)) / statistics.median(
            again(generator, without)))
        least, most = interval(lambda generator: statistics.median(
            ratio for of_layout in again(generator, pairs[name]) for ratio in of_layout), draws=1000)
        print(f"| `{name}` | {statistics.median(without):.4g} | {statistics.median(with_scopes):.4g} "
              f"| {statistics.median(with_scopes) / statistics.median(without):.3f} | {low:.3f} to {high:.3f} "
              f"| ± {100 * max(spread(without), spread(with_scopes)):.1f} % "
              f"| {statistics.median(ratio for of_layout in pairs[name] for ratio in of_layout):.3f} "
              f"| {least:.3f} to {most:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("without", type=pathlib.Path)
    parser.add_argument("with_scopes", type=pathlib.Path)
    parser.add_argument("--layouts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.layouts < 2 or options.rounds < 1:
        parser.error(f"--layouts is {options.layouts} and --rounds {options.rounds}: quartiles need 2 layouts at least")
    print("| program | instructions without | with | ratio |\n|---|---:|---:|---:|")
    for program in PROGRAMS:
        without, with_scopes = instructions(options.without, program), instructions(options.with_scopes, program)
        print(f"| `{program}` | {without:.0f} | {with_scopes:.0f} | {with_scopes / without:.3f} |", flush=True)
    compare_times([options.without.resolve(), options.with_scopes.resolve()], options.layouts, options.rounds)


if __name__ == "__main__":
    main()
