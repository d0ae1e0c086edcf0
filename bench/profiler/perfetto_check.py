#!/usr/bin/env python3
"""Opens a Chrome trace of the profiler in Perfetto's own trace processor, and counts what it finds there.

  PYTHON bench/profiler/perfetto_check.py TRACE.json

PYTHON has the package perfetto, which fetches the program trace_processor_shell on first use: where it cannot, the exit code
is 77. It is 1 where the processor reports errors, or finds no operators, counters or arrows.
"""
import subprocess
import sys

QUERIES = {
    "operators": "select count(*) as found from slice where name like 'aten::%'",
    "counters": "select count(*) as found from counter",
    "arrows": "select count(*) as found from flow",
    "errors": "select coalesce(sum(value), 0) as found from stats where severity = 'error'",
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        from perfetto.trace_processor import TraceProcessor
        processor = TraceProcessor(trace=sys.argv[1])
    except (ImportError, OSError, subprocess.CalledProcessError) as problem:
        print(f"not checked: {problem}")
        return 77
    found = {name: next(iter(processor.query(query))).found for name, query in QUERIES.items()}
    print(", ".join(f"{count} {name}" for name, count in found.items()))
    return int(found["errors"] > 0 or min(found["operators"], found["counters"], found["arrows"]) == 0)


if __name__ == "__main__":
    sys.exit(main())
