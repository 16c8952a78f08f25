#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What people see: on a terminal of 80 columns, in a pipe, in a locale without UTF-8, and with --quiet.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

point=("${cheap[@]}" -S "16,32" -D 16 --kernel "naive,tiled" --threads 1)

# Runs a command on a terminal of 80 columns; $out is all that it wrote, carriage returns included.
on_terminal() {
  status=0
  TERM=xterm timeout -k 5 "${LIMIT:-120}" python3 - "$@" >"$work/stdout" 2>"$work/stderr" <<'PY' || status=$?
import fcntl, os, pty, struct, sys, termios

child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
try:
    while piece := os.read(terminal, 65536):
        sys.stdout.buffer.write(piece)
except OSError:  # the other side has closed
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
PY
  out=$(<"$work/stdout") err=$(<"$work/stderr")
}

# No line of $1 is wider than 80 columns once colours are gone; of a line that is drawn over, each state counts.
fits() {
  python3 - "$1" <<'PY'
import re, sys

text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", open(sys.argv[1], encoding="utf-8", newline="").read())
wide = [line for line in re.split(r"[\r\n]+", text) if len(line) > 80]
sys.exit(f"wider than 80 columns: {wide}" if wide else 0)
PY
}

@test "on a terminal: bars, colours, a progress bar, and nothing wider than 80 columns" {
  on_terminal "$ATTNBENCH" run "${point[@]}" --out out.jsonl
  expect_status 0
  expect_out $'\e[1m' '·' '[####' 'ETA' '%' 'x naive serial' 'share of the roof'
  fits stdout
}

@test "on a terminal without UTF-8: the same in ASCII" {
  LC_ALL=C on_terminal "$ATTNBENCH" run "${point[@]}" --out out.jsonl
  expect_status 0
  expect_out $'\e[1m' ' us ' '+-%' 'share of the roof'
  [ -z "$(LC_ALL=C tr -d '\0-\177' <stdout)" ] || tell "nothing beyond ASCII expected"
  fits stdout
}

@test "in a pipe: no bars, no colours; both where colour is forced; ASCII where the locale says so" {
  attempt "$ATTNBENCH" run "${point[@]}" --out out.jsonl
  expect_out 'µs' '% of roof'
  [[ $out != *$'\e'* && $out != *█* && $out != *·* ]] || tell "plain text expected"
  fits stdout
  CLICOLOR_FORCE=1 attempt "$ATTNBENCH" show out.jsonl
  expect_out $'\e[1m' 'share of the roof'
  NO_COLOR=1 attempt "$ATTNBENCH" show out.jsonl
  expect_out '% of roof'
  for command in show "export --format table"; do
    # shellcheck disable=SC2086 # words
    LC_ALL=C attempt "$ATTNBENCH" $command out.jsonl
    expect_out ' us ' '+-%'
    [ -z "$(LC_ALL=C tr -d '\0-\177' <stdout)" ] || tell "nothing beyond ASCII expected"
    fits stdout
  done
  LC_ALL=C attempt "$ATTNBENCH" export out.jsonl --format md
  expect_out 'µs' # a file for others does not follow this terminal
}

@test "--wide shows all columns under words" {
  attempt "$ATTNBENCH" run "${point[@]}" --wide
  expect_status 0
  expect_out schedule threads placement median 'of roof' 'bound by' err/bound 'rows verified' 'GFLOP/s/core' phases cause
}

@test "--quiet: nothing but the exit code and the journal" {
  attempt "$ATTNBENCH" run "${point[@]}" --quiet --out out.jsonl
  expect_status 0
  [ -z "$out$err" ] || tell "silence expected"
  holds out.jsonl 'len(records) == 4 and all(r["status"] == "ok" for r in records)'
  on_terminal "$ATTNBENCH" run "${point[@]}" -q --out again.jsonl
  expect_status 0
  [ -z "$out$err" ] || tell "silence expected on a terminal too"
}

@test "--quiet keeps what -o names, and tells each point that went wrong" {
  attempt "$ATTNBENCH" run "${point[@]}" -q -o csv
  expect_status 0
  [ "$(wc -l <stdout)" = 5 ] || tell "a header and four rows expected"
  [ -z "$err" ] || tell "nothing on stderr expected"
  attempt "$BROKEN" run "${cheap[@]}" -S 32 -D 16 --kernel naive,drops_last_key --threads 1 -q
  expect_status 1
  [ -z "$out" ] || tell "nothing on stdout expected"
  [ "$(wc -l <stderr)" = 1 ] && [[ $err == *drops_last_key*wrong* ]] || tell "one line about the wrong point expected"
}

@test "verify --quiet: nothing but what is wrong" {
  attempt "$ATTNBENCH" verify --cases 2 --kernel naive --quiet
  expect_status 0
  [ -z "$out$err" ] || tell "silence expected"
  attempt "$BROKEN" verify --cases 20 --kernel drops_last_key -q
  expect_status 1
  [ -z "$out" ] && [[ $err == *wrong*drops_last_key* ]] || tell "what is wrong should stand on stderr"
}

@test "every --help fits 80 columns" {
  local command
  attempt "$ATTNBENCH" --help
  fits stdout
  for command in $(listed_commands); do
    "$ATTNBENCH" "$command" --help >"$command.help"
    fits "$command.help" || tell "of $command --help"
  done
  [ -s run.help ] && [ -s selftest-gate.help ]
}
