# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the tests use what is set here
#
# What the tests of duet and gate share: small libraries built once a file, processes of a twentieth of a second, and a
# limit so wide that what is planted (50 % and more) can't be missed and identical code can't be taken for it, however
# busy the machine is.

export ATTNBENCH_DUET_SECONDS=0.05s
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY
libraries=$BATS_FILE_TMPDIR
tiny=(-S 48 -D 16 --threads 1 --tau 20%)

build_libraries() { # "NAME FLAG..."
  local words
  while [ $# -gt 0 ]; do
    read -r -a words <<<"$1"
    "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -O2 -fPIC -shared "${words[@]:1}" -o "$BATS_FILE_TMPDIR/${words[0]}.so" \
      "$BATS_TEST_DIRNAME/gate_library.c" -lm || return 1
    shift
  done
}

# True if the Python expression holds for a JSON document `d`, or for the lines of a journal `lines`.
json_holds() { # FILE EXPRESSION
  python3 - "$1" "$2" <<'PY'
import json, sys

text = open(sys.argv[1]).read()
try:
    d, lines = json.loads(text), []
except ValueError:
    d, lines = None, [json.loads(line) for line in text.splitlines()]
if not eval(f"({sys.argv[2]})", {"d": d, "lines": lines}):
    sys.exit(f"does not hold: {sys.argv[2]}\n{text[:3000]}")
PY
}
