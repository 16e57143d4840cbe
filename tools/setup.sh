#!/usr/bin/env bash
# Lays down what building and testing need: setup.sh VENV TORCH_VERSION. Calls apt and pip only for what is missing.
#   TORCH_INDEX  package index for torch (default: pip's own configuration)
#   PYTHON       interpreter for the virtual environment (default: python3)
set -euo pipefail
venv=${1:?usage: setup.sh VENV TORCH_VERSION}
torch=${2:?usage: setup.sh VENV TORCH_VERSION}
here=$(cd "$(dirname "$0")" && pwd)

packages=(g++ ninja-build ccache libgloo-dev libgtest-dev libgmock-dev libhwy-dev nlohmann-json3-dev libcli11-dev iproute2
          clang-format clang-tidy dataset-fashion-mnist python3-venv git)
programs=(g++ ninja ip python3 git)
headers=(gloo/rendezvous/store.h gtest/gtest.h gmock/gmock.h hwy/highway.h nlohmann/json.hpp CLI/CLI.hpp)

stop() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

cmake_is_new_enough() {
  local version
  version=$(cmake --version 2>/dev/null | awk 'NR == 1 {print $3}') || return 1
  [[ -n $version && $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) == 3.25 ]]
}

missing_packages() {
  local installed
  # shellcheck disable=SC2016
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    grep -qx "$package installed" <<<"$installed" || echo "$package"
  done
}

# Without dpkg this script cannot install anything, but can say what to install.
check_by_hand() {
  local missing=()
  for program in "${programs[@]}"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  for header in "${headers[@]}"; do
    echo "#include <$header>" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || missing+=("<$header>")
  done
  ((${#missing[@]} == 0)) || stop "not a Debian or Ubuntu system, and missing: ${missing[*]}" \
    "install what provides them (on Debian: ${packages[*]}), then run make setup again"
}

install_packages() {
  local missing=("$@") as_root=()
  local line="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  if ((EUID != 0)); then
    { command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; } ||
      stop "missing: ${missing[*]}" "run this as root, then make setup again:" "  $line"
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" ||
    stop "apt-get could not install: ${missing[*]}" "run it by hand to see why:" "  $line"
}

# What the virtual environment holds; cmake only where the system's is too old.
python_packages() {
  echo "numpy"
  echo "ruff"
  clang-format --version 2>/dev/null | grep -q 'version 14\.' || echo "clang-format==14.0.6"
  cmake_is_new_enough || echo "cmake>=3.25"
}

fill_venv() {
  local stamp=$venv/setup-done wanted
  wanted="torch==$torch"
  [[ -f $stamp && $(<"$stamp") == "$wanted" && -x $venv/bin/python ]] && return
  "${PYTHON:-python3}" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "${PYTHON:-python3} is older than 3.10, which torch $torch needs; set PYTHON to a newer one"
  [[ -x $venv/bin/python ]] || "${PYTHON:-python3}" -m venv "$venv" || stop "cannot make a virtual environment in $venv"
  if [[ $("$venv/bin/python" "$here/../cmake/find_torch.py" | tail -n 1 || true) != "$torch"* ]]; then
    echo "setup: installing torch $torch into $venv" >&2
    "$venv/bin/python" -m pip install -qq ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "torch==$torch" ||
      stop "pip could not install torch==$torch into $venv (TORCH_INDEX names another package index)"
  fi
  local extra
  mapfile -t extra < <(python_packages)
  "$venv/bin/python" -m pip install -qq "${extra[@]}" || stop "pip could not install ${extra[*]} into $venv"
  echo "$wanted" >"$stamp"
}

if command -v dpkg-query >/dev/null; then
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
else
  check_by_hand
fi
fill_venv
PATH=$venv/bin:$PATH cmake_is_new_enough || stop "CMake 3.25 or newer is missing; try $venv/bin/pip install cmake"
