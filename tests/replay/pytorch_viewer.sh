#!/usr/bin/env bash
# Snapshots that Tenon writes go through every command of PyTorch's own viewer, torch/cuda/_memory_viz.py.
# TENON_TORCH_PYTHON names a python that has torch; python3 otherwise.
set -euo pipefail

find_viewer='import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])'
viewer=
for python in ${TENON_TORCH_PYTHON:-} python3; do
  if folder=$("$python" -c "$find_viewer" 2>/dev/null) && [[ -f $folder/cuda/_memory_viz.py ]]; then
    viewer=$folder/cuda/_memory_viz.py
    break
  fi
done
if [[ -z $viewer ]]; then
  echo "skipped: no python3 here can import torch, whose viewer this test runs (TENON_TORCH_PYTHON names one that can)"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# The flame graph commands pipe into a Perl script that they would download; the lines it would get are what is checked.
export HOME=$folder
mkdir .cache
printf '#!/bin/sh\nexec cat\n' >.cache/flamegraph.pl
chmod +x .cache/flamegraph.pl

view() { "$python" "$viewer" "$@"; }
tenon() { "$TENON_PROGRAM" "$@"; }
history=$TENON_SOURCE_DIR/examples/traces/gpt2_adam.trace.gz

tenon trace slice "$history" part.trace --from 100 --until 3000 --quiet
tenon trace convert "$history" whole.pickle --quiet
tenon trace convert part.trace cut.pickle --allocator expandable --quiet
tenon trace convert "$history" full.pickle --allocator expandable --capacity 4GiB --quiet # runs out of memory

for snapshot in whole cut full; do
  view stats $snapshot.pickle >stats.txt
  view trace $snapshot.pickle >trace.txt
  view memory $snapshot.pickle -o memory.txt
  view segments $snapshot.pickle -o segments.txt
  view trace_plot $snapshot.pickle -o trace_plot.html
  view trace_plot --segments $snapshot.pickle -o trace_plot.html
  view trace_plot --filter_freed $snapshot.pickle -o trace_plot.html
  view segment_plot $snapshot.pickle -o segment_plot.html
  "$python" - $snapshot.pickle "$viewer" <<'PYTHON'
import pickle, sys
name, viewer = sys.argv[1:]
with open(name, "rb") as file:
    snapshot = pickle.load(file)
stated = sum(segment["total_size"] for segment in snapshot["segments"])
tiled = sum(block["size"] for segment in snapshot["segments"] for block in segment["blocks"])
assert stated == tiled, (stated, tiled)
entries = snapshot["device_traces"][0]
reserved = 0
for entry in entries:
    if entry["action"] in ("segment_alloc", "segment_map"):
        reserved += entry["size"]
    if entry["action"] in ("segment_free", "segment_unmap"):
        reserved -= entry["size"]
assert reserved == stated, f"the trace reserves {reserved} bytes, the segments hold {stated}"
assert f"{len(entries)} entries" in open("trace.txt").read()
assert f"segments: {len(snapshot['segments'])}\n" in open("stats.txt").read()
PYTHON
done
grep -q OutOfMemoryError trace.txt

# `compare` of the command line fails on every snapshot up to PyTorch 2.15: it iterates the keys of the dict that it has
# just read. The function behind it takes the segments.
"$python" - "$viewer" whole.pickle cut.pickle <<'PYTHON'
import contextlib, importlib.util, pickle, sys
spec = importlib.util.spec_from_file_location("memory_viz", sys.argv[1])
viewer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viewer)
before, after = (pickle.load(open(name, "rb"))["segments"] for name in sys.argv[2:])
with contextlib.redirect_stdout(None):
    lines = viewer.compare(before, after, format_flamegraph=lambda text: text)
assert "only_before;" in lines and "only_after;" in lines
PYTHON
echo "the viewer of $("$python" -c 'from importlib.metadata import version; print("torch", version("torch"))') takes them"
