#!/usr/bin/env bash
# The demo: a memory history of a real PyTorch run replayed under every allocator, settings recommended for it, then two
# models trained on real pictures under several allocators. `./dev demo` builds first and then runs this.
#   examples/demo.sh [OUTPUT_FOLDER]        needs `tenon` on the PATH
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-tenon-out/demo}
history=examples/traces/llama7b_lora_ckpt.trace.gz
mkdir -p "$out"

# step SENTENCE COMMAND…: shows the command as a reader would type it, then runs it.
step() {
  printf '\n# %s\n$ %s\n\n' "$1" "${*:2}"
  "${@:2}"
}

step "A fine-tuning run of a 7B model, recorded event by event: what would each allocator have needed?" \
  tenon replay "$history" --capacity 15GiB --html "$out/replay.html"
step "What should this run be started with, and what is the smallest device that is safe?" \
  tenon tune "$history" --capacity 15GiB --budget 30s
step "On a device that is a little smaller it would have died: of what, and what would have saved it?" \
  tenon doctor "$history" --capacity 14800MiB

if [[ -d /usr/share/datasets/fashion-mnist ]]; then
  step "A multi-layer perceptron on 60,000 pictures, the allocator chosen in TOML" \
    tenon run examples/experiments/fashion_mnist_mlp.toml --sweep --out "$out/mlp"
  step "A convolutional network, the same way" \
    tenon run examples/experiments/fashion_mnist_lenet.toml train.epochs=1 --sweep --out "$out/lenet"
else
  printf '\nThe Fashion-MNIST pictures are not on this system (package dataset-fashion-mnist): no training here.\n'
fi

printf '\nReports (open in a browser, no network needed):\n'
find "$out" -name '*.html' -not -path '*/previous-*' | sort | sed "s|^|  $PWD/|"
