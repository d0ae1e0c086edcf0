#!/usr/bin/env bash
# Every page of bench/results has its row in the table of their README: commit, machine, command and spread.
set -euo pipefail
cd "${TENON_SOURCE_DIR:?is set by CTest}/bench/results"
bad=0 checked=0
for page in *.md *.txt; do  # pictures belong to their page
  if [[ $page == README.md ]]; then continue; fi
  checked=$((checked + 1))
  if ! grep -qE "^\| \[$page\]\($page\)( \| [^|]+){4} \|$" README.md; then
    echo "$page: README.md has no row with its commit, machine, command and spread"
    bad=$((bad + 1))
  fi
done
echo "$checked pages, $bad without a row"
[[ $bad == 0 && $checked -gt 0 ]]
