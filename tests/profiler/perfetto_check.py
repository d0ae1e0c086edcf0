"""Opens a Chrome trace of Tenon in Perfetto's trace processor, and holds what it knows against the file.

python3 tests/profiler/perfetto_check.py TRACE
"""

import collections
import json
import sys

SKIPPED = 77


def opened(path):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    # The file as it is, beside the program: perfetto downloads that at its first use.
    try:
        return TraceProcessor(trace=path, config=TraceProcessorConfig(load_timeout=60))
    except Exception as problem:  # whatever a download may throw
        print(f"perfetto's trace processor cannot be had here: {str(problem).splitlines()[0]}")
        sys.exit(SKIPPED)


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    phases = collections.Counter(event["ph"] for event in events)
    processor = opened(path)

    def number(query):
        return next(iter(processor.query(query))).value

    complaints = [
        (row.name, row.value)
        for row in processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    ]
    assert not complaints, complaints
    slices = number("select count(*) as value from slice where dur >= 0")
    assert slices >= phases["X"], (slices, phases)
    names = collections.Counter(event["name"] for event in events if event["ph"] == "X")
    for name, count in names.most_common(20):
        found = number("select count(*) as value from slice where name = '{}'".format(name.replace("'", "''")))
        assert found == count, (name, found, count)
    counters = number("select count(*) as value from counter")
    assert counters >= phases["C"] > 0, (counters, phases)
    flows = number("select count(*) as value from flow")
    assert flows == phases["f"] > 0, (flows, phases)
    print(f"{slices} slices, {counters} counters, {flows} flows")


if __name__ == "__main__":
    main()
