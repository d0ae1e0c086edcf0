#!/usr/bin/env bash
# launch.sh N PROGRAM [ARGUMENTS…]: N processes with the variables that torchrun gives its ranks. Where one ends badly the others
# have five seconds to say what they know, as under a launcher of the field; the code is that of the first.
set -u
count=$1
shift
# A port that the kernel gives nobody for an outgoing connection, and that no other launch has: the lock is the ranks' until they end.
read -r first_given _ </proc/sys/net/ipv4/ip_local_port_range
trap 'rm -f "$lock"' EXIT
for port in $(shuf -i "$((first_given - 12000))-$((first_given - 1))" -n 50); do
  lock=${TMPDIR:-/tmp}/tenon-port-$port
  exec 9>"$lock"
  flock -n 9 || continue
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break  # nobody answers: it is free
done
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=$count LOCAL_WORLD_SIZE=$count OMP_NUM_THREADS=1
ids=()
for ((rank = 0; rank < count; rank++)); do
  RANK=$rank LOCAL_RANK=$rank "$@" &
  ids+=($!)
done
code=0
while [[ ${#ids[@]} -gt 0 ]]; do
  wait -n -p ended "${ids[@]}"
  one=$?
  left=()
  for id in "${ids[@]}"; do [[ $id == "$ended" ]] || left+=("$id"); done
  ids=("${left[@]}")
  [[ $one != 0 && $code == 0 ]] || continue
  code=$one
  (sleep 5; kill -KILL "${ids[@]}") 2>/dev/null >&2 &
  reaper=$!
done
[[ -z ${reaper:-} ]] || kill "$reaper" 2>/dev/null
exit "$code"
