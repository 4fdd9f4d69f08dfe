# Sourced by scripts/demo and scripts/check: makes .venv in the checkout from the package index.
# PYTHON chooses the interpreter; it must be CPython 3.10 or newer.
cd "$(dirname "$0")/.." || exit
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "error: $python is not Python 3.10 or newer; set PYTHON=/path/to/python3" >&2
    exit 18
}
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear .venv || {
        echo "error: $python cannot make a virtual environment; on Debian and Ubuntu:" \
            "apt-get install python3-venv" >&2
        exit 18
    }
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$extras]" || exit
