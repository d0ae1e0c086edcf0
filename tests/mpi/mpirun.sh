#!/usr/bin/env bash
# mpirun as a test needs it: as root, in containers, with more ranks than cores, over shared memory and loopback alone;
# with TENON_SINGLE_COPY=cma large messages are copied at once, as by default. Of Open MPI sanitizers know neither what
# it keeps nor how its threads agree.
exec env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 OMP_NUM_THREADS=1 \
  ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" \
  TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}ignore_noninstrumented_modules=1" \
  mpirun --oversubscribe --bind-to none --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism "${TENON_SINGLE_COPY:-none}" \
  --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1 "$@"
