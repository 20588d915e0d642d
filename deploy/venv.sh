#!/bin/sh
# Makes DIRECTORY a virtual environment with the packages of the locks: deploy/venv.sh DIRECTORY LOCK...
# requirements.lock has the packages that Bidkeeper needs to run; with it, this checkout is installed too, as editable.
# Locks that DIRECTORY lacks are added. It is rebuilt if its Python, its path, setup.py or one of its locks has changed,
# because an environment works with only one Python at one path. Otherwise it is left as it is.
# PYTHON names the interpreter; DIRECTORY is absolute, or in the checkout.
set -eu
cd "$(dirname "$0")/.."
directory=$1
shift
ok=$directory/.ok # its first line names Python and path, the others are in the format of sha256sum

# In an activated environment `python3` is that environment's, so use the interpreter it was made from.
python=$("${PYTHON:-python3}" -c 'if True:
    import os, sys
    if sys.version_info < (3, 11):
        sys.exit("Bidkeeper needs Python 3.11 or newer (PYTHON=... names one)")
    print(os.path.realpath(sys._base_executable))')
made_of="$("$python" -c 'import platform; print(platform.python_version(), platform.machine())') $python $PWD $directory"

has_all() {
    for lock; do grep -qsF "  $lock" "$ok" || return 1; done
}

if [ "$(head -n 1 "$ok" 2>/dev/null)" != "$made_of" ] || ! sed 1d "$ok" | sha256sum -c >/dev/null 2>&1; then
    rm -rf "$directory"
elif has_all "$@"; then
    exit
fi
echo "setting up $directory ..."

# Builds are not isolated, because an isolated build would use the newest setuptools, not the locked one.
install() {
    "$directory/bin/python" -m pip install -q --disable-pip-version-check --no-build-isolation "$@"
}

if [ ! -d "$directory" ]; then
    "$python" -m venv "$directory" || {
        rm -rf "$directory"
        echo "the virtual environment could not be made; on Debian: apt-get install python3-venv" >&2
        exit 1
    }
    echo '*' >"$directory/.gitignore"
    sed -n '/^setuptools==/,/# via/p' requirements.lock | install --require-hashes -r /dev/stdin
fi
requirements=
for lock; do requirements="$requirements -r $lock"; done
# embit has no wheels. pip 23.0 (Debian 12) warns about the second line without the last one; newer versions of pip
# accept the last one silently here, but not on the command line.
# shellcheck disable=SC2086
install --require-hashes -r /dev/stdin $requirements <<'END'
--only-binary :all:
--no-binary embit
--use-feature no-binary-enable-wheel-cache
END
if [ ! -e "$ok" ]; then
    made_with="setup.py pyproject.toml"
    if [ "${requirements#*requirements.lock}" != "$requirements" ]; then
        install --no-deps -e .
        cat "$directory"/lib/python*/site-packages/bidkeeper-*.dist-info/top_level.txt | xargs "$directory/bin/python" -m compileall -q
    fi
    echo "$made_of" >"$ok.new"
else
    made_with=
    cp "$ok" "$ok.new"
fi
# shellcheck disable=SC2086
sha256sum $made_with "$@" >>"$ok.new"
mv "$ok.new" "$ok"
