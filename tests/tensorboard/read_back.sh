#!/usr/bin/env bash
# What SummaryWriter writes, read by TensorBoard's own reader. Where Python does not have it (./dev test --full installs
# it beside the build), this is skipped.
set -euo pipefail
python=$TENON_BINARY_DIR/../tensorboard/bin/python
if [[ ! -x $python ]]; then python=python3; fi
if ! "$python" -c 'import tensorboard, numpy, PIL' 2>/dev/null; then
  echo "Python has no tensorboard, numpy and pillow: ./dev test --full installs them"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$TENON_BINARY_DIR/tests/tenon_write_events" "$folder/run"
"$python" "$TENON_SOURCE_DIR/tests/tensorboard/read_back.py" "$folder/run"
