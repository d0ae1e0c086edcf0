#!/bin/sh
# A Slurm of one node on this machine, for tests: `local_slurm.sh start FOLDER PORT` makes the cluster in a folder of its own
# (PORT and PORT + 1 on loopback) and returns when the node takes jobs; `local_slurm.sh stop FOLDER` ends it. Its commands
# find it by SLURM_CONF=FOLDER/slurm.conf. Needs root, munged, slurmctld and slurmd.
set -eu
folder=$2
PATH=$PATH:/usr/sbin:/sbin

stop() {
  for name in slurmd slurmctld munged; do
    if [ -s "$folder/$name.pid" ]; then kill "$(cat "$folder/$name.pid")" 2>/dev/null || true; fi
  done
}

if [ "$1" = stop ]; then
  stop
  exit 0
fi

port=$3
host=$(hostname -s)
mkdir -p "$folder/state" "$folder/spool"
chmod 700 "$folder"
head -c 128 /dev/urandom >"$folder/key"
chmod 400 "$folder/key"
cat >"$folder/slurm.conf" <<END
ClusterName=tenon
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
trap 'stop' EXIT
munged --force --key-file="$folder/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
  --log-file="$folder/munged.log" --seed-file="$folder/seed" --num-threads=2 >"$folder/start.log" 2>&1
export SLURM_CONF="$folder/slurm.conf"
slurmctld -f "$SLURM_CONF" >>"$folder/start.log" 2>&1
slurmd -f "$SLURM_CONF" -N "$host" >>"$folder/start.log" 2>&1
tries=0
until [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 300 ]; then
    cat "$folder"/*.log >&2
    exit 1
  fi
  sleep 0.1
done
trap - EXIT
