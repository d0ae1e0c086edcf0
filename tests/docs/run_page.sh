#!/usr/bin/env bash
# Runs the ```sh blocks of one page, in order, in one shell, in a scratch folder that looks like a checkout whose release
# build is this build. A block after the line `<!-- not run here: REASON -->` is left out; the reason is printed.
set -euo pipefail
page=$1
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}"
scratch=$TENON_BINARY_DIR/docs/${page//\//_}
rm -rf "$scratch"
mkdir -p "$scratch/checkout/build"
for entry in "$TENON_SOURCE_DIR"/*; do
  if [[ $(basename "$entry") != build ]]; then ln -s "$entry" "$scratch/checkout/"; fi
done
ln -s "$TENON_BINARY_DIR" "$scratch/checkout/build/release"

awk -v page="$page" '
  /^<!-- not run here: / { reason = $0; sub(/^<!-- not run here: /, "", reason); sub(/ -->.*/, "", reason) }
  /^```sh$/ {
    if (reason != "") printf "echo \"%s:%d is not run here: %s\"\n", page, NR, reason
    else { inside = 1; blocks++; printf "echo \"--- %s:%d\"\n", page, NR }
    reason = ""
    next
  }
  /^```/ { inside = 0 }
  inside { print }
  END { printf "echo \"%d blocks\"\n", blocks }
' "$TENON_SOURCE_DIR/$page" >"$scratch/commands.sh"

# A page shows mpirun as its reader types it; here it may run as root, and with fewer cores than ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
if grep -q '^mpirun ' "$scratch/commands.sh" && [[ ! -e $TENON_BINARY_DIR/lib/tenon/plugins/mpi.so ]]; then
  echo "the plugin mpi is not built: apt install libopenmpi-dev openmpi-bin"
  exit 77
fi
cd "$scratch/checkout"
# A page may show only code and commands that are not run here; then there is nothing to fail.
PATH=$TENON_BINARY_DIR/bin:$PATH HOME=$scratch bash -euxo pipefail "$scratch/commands.sh"
