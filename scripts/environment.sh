# Sourced by the other scripts: goes to the repository root, finds a Python, makes .venv, installs extras once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }
fail() { say "$(basename "$0"): $*"; exit 1; }

# Prints the newest Python >= 3.11 on PATH that satisfies the given test, an expression over `sys`.
# A candidate must run, since version managers leave commands on PATH that do not.
find_python() {
    local candidate
    for candidate in python3.14 python3.13 python3.12 python3.11 python3 python; do
        if "$candidate" -c "import sys; assert sys.version_info >= (3, 11); $1" >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

# Prints the name of a package of the Python at $1: system_package PYTHON venv
system_package() {
    "$1" -c 'import sys; print("python%d.%d-" % sys.version_info[:2] + sys.argv[1])' "$2"
}

# Whether extension modules can be built for the Python at $1.
can_compile() {
    command -v cc >/dev/null && has_headers "$1"
}

has_headers() {
    "$1" -c 'import os, sysconfig; assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' \
        >/dev/null 2>&1
}

# What a bare Debian or Ubuntu lacks, installed where we may: its Python comes without venv and ensurepip, and the
# languages are compared with their compilers (those tests are skipped where a compiler is missing). The argument
# `headers` asks for what compiling against Python needs.
install_system_packages() {
    local python wanted=()
    python=$(find_python "import ensurepip, venv" || find_python "" || true)
    if [ -n "$python" ] && ! "$python" -c "import ensurepip, venv" >/dev/null 2>&1; then
        wanted+=("$(system_package "$python" venv)")
    fi
    if [ -n "$python" ] && [ "${1-}" = headers ] && ! has_headers "$python"; then
        wanted+=("$(system_package "$python" dev)")
    fi
    command -v ocamlc >/dev/null || wanted+=(ocaml-nox)
    command -v cc >/dev/null || wanted+=(gcc libc6-dev)
    if [ "${#wanted[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "Installing system packages: ${wanted[*]}"
        # Without them the tests still run, but for those that ask the compilers.
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${wanted[@]}" >/dev/null ||
            say "The system packages could not be installed; going on without them"
    fi
}

# Makes the environment $1 unless it works already. An interrupted creation is repaired by repeating it.
make_venv() {
    local python
    "$1/bin/python" -c "import sys, pip; assert sys.version_info >= (3, 11)" >/dev/null 2>&1 && return
    if ! python=$(find_python "import ensurepip, venv"); then
        python=$(find_python "") || fail "no Python >= 3.11 on PATH; install one (python.org, your system's packages)"
        fail "$python has no ensurepip, so it cannot make $1; on Debian or Ubuntu:" \
            "apt-get install $(system_package "$python" venv)"
    fi
    "$python" -m venv "$1" || fail "$python could not make $1; remove that folder and try again"
}

# Runs a quiet command with its output kept in file $1 and, on a terminal, the seconds it has taken.
run_quietly() {
    local log=$1 start=$SECONDS pid
    shift
    "$@" >"$log" 2>&1 &
    pid=$!
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        if [ -t 2 ]; then printf '\r  %ds ' "$((SECONDS - start))" >&2; fi
        sleep 1
    done
    trap - INT TERM
    if [ -t 2 ]; then printf '\r' >&2; fi
    if ! wait "$pid"; then
        tail -n 20 "$log" >&2
        fail "installation failed after $((SECONDS - start)) s; the whole log is $log. Mend the cause and run again"
    fi
}

# Installs this package with the given extras into .venv, once for each state of pyproject.toml.
install_extras() {
    local stamp=.venv/installed wanted state known="" extra missing=""
    make_venv .venv
    state=$(cat pyproject.toml scripts/constraints.txt | cksum | tr ' ' '-')
    if [ -f "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$state" ]; then known=" $(sed -n 2p "$stamp") "; fi
    for extra in "$@"; do
        case "$known" in *" $extra "*) ;; *) missing="$missing $extra" ;; esac
    done
    if [ -z "$missing" ]; then return; fi
    wanted=$(printf '%s ' "$known" "$@" | tr -s ' ' '\n' | sort -u | tr '\n' ' ' | sed 's/^ *//; s/ *$//')
    say "Installing into .venv with extras: $wanted (only this once; some minutes where torch is new)"
    run_quietly .venv/install.log .venv/bin/python -m pip install --disable-pip-version-check \
        --constraint scripts/constraints.txt --editable ".[${wanted// /,}]"
    printf '%s\n%s\n' "$state" "$wanted" >"$stamp"
}
