# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # the tests use what is set here
#
# What the command-line tests share. Each test has a folder of its own, $work, and runs in it; $ATTNBENCH is the program under test.

root=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
ATTNBENCH=${ATTNBENCH:-$root/build/release/attnbench}
BROKEN=${ATTNBENCH}-broken
MODE=${ATTNBENCH_TEST_MODE:-release}
export LC_ALL=C.UTF-8
unset OMP_NUM_THREADS OMP_PROC_BIND OMP_PLACES ATTNBENCH_ISA HWLOC_XMLFILE HWLOC_SYNTHETIC CLICOLOR_FORCE MAKEFLAGS MFLAGS MAKELEVEL

# A point costs as little as it can: what is tested is never the figure.
cheap=(--samples 3 --min-time 0.01s)

setup() {
  work=$(mktemp -d)
  cd "$work" || return 1
}

teardown() {
  [ -z "${work:-}" ] || rm -rf "$work"
}

# Whichever python3 has the jsonschema module.
python() {
  if python3 -c 'import jsonschema' 2>/dev/null; then python3 "$@"; else /usr/bin/python3 "$@"; fi
}

# Runs a command with a limit (seconds, $LIMIT) and leaves $status, $out and $err. A sanitizer's report fails the test.
attempt() {
  status=0
  timeout -k 5 "${LIMIT:-120}" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
  out=$(<"$work/stdout")
  err=$(<"$work/stderr")
  if grep -qE 'Sanitizer|runtime error:' "$work/stderr"; then
    cat "$work/stderr"
    return 1
  fi
}

# The commands, as --help lists them.
listed_commands() {
  "$ATTNBENCH" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p'
}

tell() {
  printf '%s\n' "$*"
  printf 'exit %s\n--- stdout\n%.3000s\n--- stderr\n%.3000s\n' "$status" "$out" "$err"
  return 1
}

expect_status() {
  [ "$status" = "$1" ] || tell "exit $1 expected"
}

expect_out() { # every argument, a fixed string, stands in stdout
  local text
  for text in "$@"; do
    [[ $out == *"$text"* ]] || tell "stdout should hold '$text'"
  done
}

# The form of every refusal: the exit code, nothing on stdout, one line on stderr that holds each given string.
expect_refusal() { # STATUS STRING...
  local text code=$1
  shift
  [ "$status" = "$code" ] || tell "exit $code expected"
  [ -z "$out" ] || tell "stdout should be empty"
  [ "$(wc -l <"$work/stderr")" = 1 ] || tell "one line on stderr expected"
  for text in "$@"; do
    [[ $err == *"$text"* ]] || tell "the error should name '$text'"
  done
}

refused() { # ARGUMENTS... -- STRING...: attnbench with these arguments is a usage error that names the strings
  local arguments=()
  while [ "$1" != -- ]; do
    arguments+=("$1")
    shift
  done
  shift
  attempt "$ATTNBENCH" "${arguments[@]}"
  expect_refusal 2 "$@"
}

# True if the Python expression holds for a journal: `contexts` and `records` are its lines, in file order.
holds() { # FILE EXPRESSION
  python - "$1" "$2" <<'PY'
import collections, json, sys

lines = [json.loads(line) for line in open(sys.argv[1])]
contexts = [line for line in lines if line["schema"] == "attnbench.context/1"]
records = [line for line in lines if line["schema"] == "attnbench.result/1"]
if len(contexts) + len(records) != len(lines):
    sys.exit("a line that is neither context nor record")
if not eval(sys.argv[2]):
    print("does not hold:", sys.argv[2])
    print(collections.Counter((r["status"], r["reason"]) for r in records).most_common(10))
    sys.exit(1)
PY
}

# The tables of a Markdown file as GitHub reads it, a JSON array of rows of cells; skips the test where its reader is missing.
markdown_tables() { # FILE
  command -v cmark-gfm >/dev/null || skip "no cmark-gfm (scripts/setup --test)"
  cmark-gfm -e table "$1" >"$1.html"
  python3 - "$1.html" <<'PY'
import html.parser, json, sys

class Tables(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.cell = [], None

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""
        elif self.cell is not None:
            self.cell += f"<{tag}: no text>"

    def handle_comment(self, data):
        if self.cell is not None:
            self.cell += f"<!--{data}-->"

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append(" ".join(self.cell.split()))
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

reader = Tables()
reader.feed(open(sys.argv[1], encoding="utf-8").read())
print(json.dumps(reader.tables))
PY
}

# Every line is valid by the schemas in results/.
valid_journal() {
  python "$root/scripts/check-results" "$1"
}

# A copy of the source tree in $1, with the objects of the program under test so that little is compiled anew.
copy_tree() {
  mkdir -p "$1"
  tar -C "$root" --exclude=./build --exclude=./.git --exclude=./results/local -cf - . | tar -xf - -C "$1"
}

copy_objects() { # TREE
  mkdir -p "$1/build"
  cp -a "$(dirname "$ATTNBENCH")" "$1/build/release"
}
