#!/usr/bin/env bash
# Snapshots that Tenon writes go through every command of PyTorch's own viewer, torch/cuda/_memory_viz.py: those of
# `tenon trace convert`, of `tenon replay --snapshot`, and of a training run with `--record snapshot`, call stacks included.
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
tenon replay "$history" -a expandable --capacity 4GiB --snapshot full.pickle --quiet >full.txt # runs out of memory
tenon replay part.trace -a caching --capacity 6GiB --snapshot replayed.pickle --quiet >replay.txt
cat >run.toml <<TOML
[model]
name = "gpt"
hidden = 32
layers = 1
context = 16
[data]
name = "text"
path = "$TENON_SOURCE_DIR/README.md"
limit = 64
test_limit = 16
[train]
batch_size = 8
test_batch_size = 8
max_steps = 3
threads = 1
TOML
tenon run run.toml --record snapshot --out run >run.txt 2>&1 || { cat run.txt; exit 1; }
mv run/memory.pickle trained.pickle

for snapshot in whole cut full replayed trained; do
  view stats $snapshot.pickle >stats.txt
  view trace $snapshot.pickle >trace.txt
  view memory $snapshot.pickle -o memory.txt
  view segments $snapshot.pickle -o segments.txt
  view trace_plot $snapshot.pickle -o trace_plot.html
  view trace_plot --segments $snapshot.pickle -o trace_plot.html
  view trace_plot --filter_freed $snapshot.pickle -o trace_plot.html
  view segment_plot $snapshot.pickle -o segment_plot.html
  for page in trace_plot segment_plot; do
    grep -q MemoryViz.js $page.html # the viewer's page, with the data in it
    rm $page.html
  done
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
view trace full.pickle >trace.txt
grep -q OutOfMemoryError trace.txt
# A frame per call: what holds the memory of a run is named.
view memory trained.pickle -o memory.txt
grep -q tenon:: memory.txt || { echo "no function of the run is named"; head memory.txt; exit 1; }

# `compare` of the command line fails on every snapshot up to PyTorch 2.15, its own too: it iterates the keys of the dict
# that it has just read. Any other failure would be ours, and the function behind it takes the segments.
if ! view compare whole.pickle trained.pickle -o compare.txt 2>compare_error.txt; then
  grep -q '^TypeError: string indices must be integers' compare_error.txt || { cat compare_error.txt; exit 1; }
fi
for pair in "whole cut" "whole trained" "replayed trained"; do
  read -r before after <<<"$pair"
  "$python" - "$viewer" "$before.pickle" "$after.pickle" <<'PYTHON'
import contextlib, importlib.util, pickle, sys
spec = importlib.util.spec_from_file_location("memory_viz", sys.argv[1])
viewer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viewer)
before, after = (pickle.load(open(name, "rb"))["segments"] for name in sys.argv[2:])
with contextlib.redirect_stdout(None):
    lines = viewer.compare(before, after, format_flamegraph=lambda text: text)
assert "only_before;" in lines and "only_after;" in lines
PYTHON
done
echo "the viewer of $("$python" -c 'from importlib.metadata import version; print("torch", version("torch"))') takes them"
