#!/usr/bin/env bash
# The trace of a training run, read by Perfetto's own trace processor. Where Python has no `perfetto`, or the program that
# it downloads at its first use cannot be had, this is skipped. TENON_PERFETTO_PYTHON names a Python that has it.
set -euo pipefail
python=${TENON_PERFETTO_PYTHON:-python3}
if ! "$python" -c 'import perfetto.trace_processor' 2>/dev/null; then
  echo "$python has no perfetto: pip install perfetto, and name its Python in TENON_PERFETTO_PYTHON"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ((i = 0; i < 4000; ++i)); do printf 'line %d of a text that is learned\n' "$i"; done > "$folder/text"
cat > "$folder/run.toml" <<TOML
[data]
name = "text"
path = "$folder/text"
[model]
name = "gpt"
hidden = 32
layers = 2
heads = 2
context = 32
[device]
name = "simulated:0"
[train]
max_steps = 6
batch_size = 8
[profile]
enabled = true
TOML
"$TENON_PROGRAM" run "$folder/run.toml" --out "$folder/run" --quiet > /dev/null
"$python" "$TENON_SOURCE_DIR/tests/profiler/perfetto_check.py" "$folder/run/profile.chrome.json"
