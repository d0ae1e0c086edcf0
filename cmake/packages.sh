# What a machine needs, as packages of Debian 12 and Ubuntu 24.04, and how the missing ones are installed. Sourced by dev.
# `a|b`: either; the first that apt knows is installed. `?a`: wanted, but what needs it reports itself as skipped where the
# distribution does not have it.
# shellcheck shell=bash disable=SC2034
readonly packages_build="
  g++ make cmake ninja-build ccache pkg-config|pkgconf
  libboost-dev libtomlplusplus-dev libcli11-dev libfmt-dev libspdlog-dev nlohmann-json3-dev zlib1g-dev
  libelf-dev libssl-dev libutf8proc-dev libprotozero-dev libpng-dev libncurses-dev prometheus-cpp-dev
  libopenblas-dev libdnnl-dev
  libgtest-dev libgmock-dev libbenchmark-dev ?librapidcheck-dev
  ?libopenmpi-dev ?openmpi-bin ?slurm-wlm ?munge
  ?dataset-fashion-mnist"
readonly packages_full="clang libomp-dev libclang-rt-dev|libclang-rt-18-dev|libclang-rt-14-dev"
readonly packages_lint="?clang-format-14 ?clang-tidy-14 shellcheck" # other versions format and warn differently
readonly packages_python="python3 python3-venv"
readonly packages_mutate="python3 python3-clang-14|python3-clang-18"

# A package that dpkg only heard of is "not-installed".
is_installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }
apt_knows() { [[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[!\(]* ]]; }

# first CONDITION ENTRY: the first name of "a|b" or "?a" that fulfils it; fails if none does.
first() {
  local name
  for name in ${2//[|?]/ }; do
    if "$1" "$name"; then
      echo "$name"
      return
    fi
  done
  return 1
}

# Puts what can be installed of the missing entries into `names`; fails if a required one is unknown to apt's lists.
choose_packages() {
  local entry name
  names=() unknown=()
  compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || return 1
  for entry in "${missing[@]}"; do
    if name=$(first apt_knows "$entry"); then
      names+=("$name")
    elif [[ $entry == \?* ]]; then
      unknown+=("${entry#\?}")
    else
      return 1
    fi
  done
}

# as_root COMMAND…; fails if neither root nor sudo is at hand.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    env DEBIAN_FRONTEND=noninteractive "$@" >&2
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@" >&2
  fi
}
can_install() {
  [[ $(id -u) == 0 ]] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; }
}

# Installs what is missing of the given entries. Exits 2 with the exact command where that is not possible.
install_packages() {
  local entry missing=() names=() unknown=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is not a Debian or Ubuntu, so nothing is installed here; needed (Debian names): $*"
    return
  fi
  for entry in "$@"; do
    first is_installed "$entry" >/dev/null || missing+=("$entry")
  done
  if [[ ${#missing[@]} == 0 ]] || { choose_packages && [[ ${#names[@]} == 0 ]]; }; then return; fi

  if ! can_install; then
    names=("${missing[@]#\?}")
    printf 'dev: packages are missing, and neither root nor sudo is at hand. Please run:\n\n  %s\n\n' \
      "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${names[*]%%|*}" >&2
    exit 2
  fi
  local attempt
  for attempt in "the lists that are here" "fresh lists"; do
    if [[ $attempt == fresh* ]]; then
      say "refreshing the package lists (apt-get update)"
      as_root apt-get update -q || fail "apt-get update failed; see above" 2
    fi
    choose_packages || continue
    if [[ ${#unknown[@]} -gt 0 ]]; then say "not in this distribution: ${unknown[*]} (what needs it will be skipped)"; fi
    if [[ ${#names[@]} == 0 ]]; then return; fi
    say "installing: ${names[*]}"
    if as_root apt-get install -y -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 --no-install-recommends "${names[@]}"; then
      return
    fi
  done
  fail "not everything could be installed (on Ubuntu: sudo add-apt-repository universe); wanted: ${missing[*]}" 2
}
