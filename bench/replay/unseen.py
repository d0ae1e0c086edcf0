#!/usr/bin/env python3
"""Histories that nobody recorded: shapes of programs, and adversaries of allocators, made from a seed.

usage: bench/replay/unseen.py FOLDER [--seed N] [SHAPE...]

Writes FOLDER/SHAPE.trace for every shape, or those named, in the text form that `tenon replay` reads. The same seed gives the same
files. bench/replay/policies.py and planned.py take them like recorded ones; bench/results/unseen.md is made that way.
"""
import argparse
import pathlib

from shapes import adversaries, phases, serving, streams, training
from shapes.program import Program

SHAPES = training.SHAPES + streams.SHAPES + phases.SHAPES + serving.SHAPES + adversaries.SHAPES


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=47)
    parser.add_argument("shapes", nargs="*")
    asked = parser.parse_intermixed_args()
    by_name = {shape.__name__: shape for shape in SHAPES}
    for name in asked.shapes:
        if name not in by_name:
            parser.error(f"unknown shape '{name}'; there are {', '.join(by_name)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in asked.shapes or by_name:
        program = Program(asked.seed)
        by_name[name](program)
        (asked.folder / f"{name}.trace").write_text(f"# name: {name}\n# what: made by unseen.py, seed {asked.seed}\n" + program.text(),
                                                    encoding="ascii")


if __name__ == "__main__":
    main()
