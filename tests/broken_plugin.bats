#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Plug-ins that do what no kernel must (tests/broken_plugin, one thing a file): each ends as its own record with a reason
# that says what it was, alone and between others, timed and verified; and the others are measured as if it were not there.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# name | status of its record | what the reason says | what verify says ("ok": nothing, it shows only when timed) |
# memory: dies by a signal or of its memory, of which a sanitizer makes something else
table() {
  cat <<'TABLE'
changes_affinity|failed|lost its mask|lost its mask|
changes_rounding|failed|left another floating-point mode|left another floating-point mode|
changes_subnormals|failed|left another floating-point mode|left another floating-point mode|
closes_files|failed|closed file descriptor 0|closed file descriptor 0|
corrupts_heap|failed|its process was killed by signal|its process was killed by signal|memory
crashes_to_close|failed|when it was to close the problem, its process was killed by signal 6|killed by signal 6|memory
drops_last_key|wrong|x bound|x bound|
exits_0|failed|its process ended with status 0|its process ended with status 0|
exits_3|failed|its process ended with status 3|its process ended with status 3|
fails_to_open|failed|kernel fails_to_open could not be opened|kernel fails_to_open could not be opened|
frees_inputs|failed|its process was killed by signal|its process was killed by signal|memory
leaves_process|failed|left a process running|left a process running|
leaves_thread|failed|left 1 thread running|left 1 thread running|
loops_forever|failed|still running after --point-timeout|still running after --point-timeout 1 s|
plans_many_phases|failed|plans_many_phases plans 99 phases|plans_many_phases plans 99 phases|
plans_much_scratch|failed|cannot allocate|cannot allocate|memory
plans_no_grain|failed|plans_no_grain plans a grain of 0|plans_no_grain plans a grain of 0|
refuses_badly|failed|its process was killed by signal 6|its process was killed by signal 6|memory
refuses_no_text|skipped|no UTF-8 text|skipped|
returns_error|failed|the kernel returned error 5|the kernel returned error 5|
returns_nan|wrong|got nan|got nan|
segfaults|failed|its process was killed by signal 11|its process was killed by signal 11|memory
segfaults_late|failed|its process was killed by signal 11|ok|memory
sleeps|failed|still running after --point-timeout|still running after --point-timeout 1 s|
stops_itself|failed|its process stopped itself|its process stopped itself|
takes_memory|failed|took more memory than --memory-limit allows|took more memory than --memory-limit allows|memory
throws|failed|its process was killed by signal 6|its process was killed by signal 6|memory
writes_beyond_out|failed|wrote out of bounds|its process was killed by signal 11|memory
writes_files|failed|answered with what is no JSON object|answered with what is no JSON object|
writes_inputs|failed|wrote to its inputs|wrote to its inputs|
TABLE
}

setup_file() {
  local file name broken=$BATS_TEST_DIRNAME/broken_plugin
  for file in "$broken"/*.c; do
    name=$(basename "$file" .c)
    cc -O1 -std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror -shared -fPIC "$file" \
      -pthread -o "$BATS_FILE_TMPDIR/$name.so" -lm || return 1
  done
  if command -v c++ >/dev/null; then
    c++ -O1 -Wall -Wextra -Werror -shared -fPIC "$broken/throws.cpp" -o "$BATS_FILE_TMPDIR/throws.so" || return 1
  fi
}

# The lines of the table that can be tried here.
cases() {
  table | while IFS='|' read -r name status reason verified memory; do
    [ -e "$BATS_FILE_TMPDIR/$name.so" ] || continue
    [ "$MODE" = release ] || [ -z "$memory" ] || continue
    echo "$name|$status|$reason|$verified"
  done
}

one=(-S 32 -D 16 --threads 1 --point-timeout 3s --memory-limit 1g)

# Those that hang get less time, for they take all that there is; the others more, in case the machine is busy.
limit_of() { # NAME
  case $1 in loops_forever | sleeps) echo 1s ;; *) echo 3s ;; esac
}

run_with() { # OUT KERNELS FILES; adds "OUT STATUS" to the file `ends`
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --point-timeout "$(limit_of "$1")" --plugin "$3" --kernel "$2" \
    --out "$1.jsonl"
  echo "$1 $status" >>ends
}

# Nothing of a plug-in's goes on when the command is over.
expect_none_left() {
  local left
  left=$(pgrep -f -- "@peer --plugin $BATS_FILE_TMPDIR" || true)
  [ -z "$left" ] && return
  xargs kill -9 <<<"$left"
  tell "left running: $left"
}

# Every run of `ends` against the table. NEIGHBOURS: "alone", or "beside" naive and tiled, which must be there with
# figures, verified, and on CPUs, in memory and with errors as in a run without any plug-in.
expect_records() { # NEIGHBOURS
  cases >known
  python - "$1" "$MODE" "$BATS_FILE_TMPDIR/control.jsonl" <<'PY'
import json, sys
beside, release, control = sys.argv[1] == "beside", sys.argv[2] == "release", sys.argv[3]
cases = {line.split("|")[0]: line.split("|") for line in open("known").read().splitlines()}
ends = dict(line.split() for line in open("ends"))
read = lambda name: [r for r in map(json.loads, open(name)) if r["schema"] == "attnbench.result/1"]
bad = []

def expect(true, *what):
    if not true:
        bad.append(what)

for run, end in ends.items():
    records = read(run + ".jsonl")
    names = sorted(cases) if run == "all" else [run]
    expect([r["kernel"] for r in records] == (["naive", *names, "tiled"] if beside else names), run, "kernels")
    only_skipped = all(cases[name][1] == "skipped" for name in names)
    expect(end == ("1" if not only_skipped else "0" if beside else "77"), run, "exit", end)
    for r in records:
        if r["kernel"] in cases:
            _, status, reason, _ = cases[r["kernel"]]
            expect((r["status"], reason in (r["reason"] or "")) == (status, True), run, r["kernel"], r["status"], r["reason"])
            expect(r["gflops"] is None, run, r["kernel"], "has rates")
            expect("cross-device" not in (r["reason"] or ""), run, r["kernel"], "errno's text for something else", r["reason"])
        else:
            c = {c["kernel"]: c for c in read(control)}[r["kernel"]]
            expect((r["status"], r["verified"]) == ("ok", "full"), run, r["kernel"], r["status"], r["reason"])
            expect(r["median_ns"] and len(r["samples_ns"]) == 3, run, r["kernel"], "no figures")
            for field in ("cpus", "schedule", "max_abs_err", "rms_err", "point_id"):
                expect(r[field] == c[field], run, r["kernel"], field, r[field], c[field])
            expect(not release or r["peak_rss_bytes"] < 2 * c["peak_rss_bytes"], run, r["kernel"], r["peak_rss_bytes"])
expect(ends, "no runs")
for what in bad:
    print(*what)
sys.exit(len(bad) > 0)
PY
}

control() {
  [ -e "$BATS_FILE_TMPDIR/control.jsonl" ] ||
    "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --kernel naive,tiled --out "$BATS_FILE_TMPDIR/control.jsonl" >/dev/null 2>&1
}

@test "the table has every file of tests/broken_plugin, and what is left out here is told" {
  local names
  names=$(cd "$root/tests/broken_plugin" && printf '%s\n' *.c *.cpp | sed 's/\.c.*$//' | sort)
  [ "$names" = "$(table | cut -d'|' -f1 | sort)" ]
  [ "$(cases | wc -l)" = "$(table | wc -l)" ] ||
    skip "$(($(table | wc -l) - $(cases | wc -l))) of $(table | wc -l) only without a sanitizer and with a C++ compiler"
}

@test "each alone: one record that says what happened" {
  local name
  for name in $(cases | cut -d'|' -f1); do
    [ "$name" = sleeps ] || run_with "$name" "$name" "$BATS_FILE_TMPDIR/$name.so" # sleeps: takes long, as loops_forever
  done
  expect_records alone
  expect_none_left
}

@test "each between two others, which are measured as if it were not there" {
  control
  local name
  for name in $(cases | cut -d'|' -f1); do
    run_with "$name" "naive,$name,tiled" "$BATS_FILE_TMPDIR/$name.so"
  done
  expect_records beside
  holds loops_forever.jsonl '"--point-timeout 1 s" in records[1]["reason"]'
  valid_journal loops_forever.jsonl
  valid_journal exits_3.jsonl
  expect_none_left
}

@test "all in one sweep: a record each, and the others as ever" {
  control
  local name names=naive files=
  for name in $(cases | cut -d'|' -f1 | sort); do
    names=$names,$name files=$files,$BATS_FILE_TMPDIR/$name.so
  done
  run_with all "$names,tiled" "${files#,}"
  expect_records beside
  holds all.jsonl 'sum("--point-timeout 3 s" in (r["reason"] or "") for r in records) == 2'
  valid_journal all.jsonl
  expect_none_left
}

@test "verify: each is named with what it did, the others go on" {
  local name verified
  while IFS='|' read -r name _ _ verified; do
    echo "$name"
    attempt "$ATTNBENCH" verify "${one[@]}" --point-timeout "$(limit_of "$name")" --plugin "$BATS_FILE_TMPDIR/$name.so" --kernel "naive,$name,tiled"
    case $verified in
      ok | skipped)
        expect_status 0
        ;;
      *)
        expect_status 1
        grep -qE "^(failed|wrong): $name: " "$work/stdout" || tell "$name should be named"
        expect_out "$verified" "--plugin $BATS_FILE_TMPDIR/$name.so"
        [[ $out != *cross-device* ]] || tell "errno's text for something else"
        ;;
    esac
    # kernel, checked, wrong, failed, skipped
    awk '($1 == "naive" || $1 == "tiled") && $2 == 1 && $3 + $4 + $5 == 0 { right++ } END { exit right != 2 }' "$work/stdout" ||
      tell "naive and tiled should have been checked and right"
  done < <(cases)
  expect_none_left
}

@test "on two threads: what differs from thread to thread is seen as well" {
  [ "$(nproc)" -ge 2 ] || skip "one CPU"
  local name names=naive files=
  for name in $(cases | cut -d'|' -f1 | grep -E '^(changes_|leaves_|returns_error|writes_inputs|segfaults$)'); do
    names=$names,$name files=$files,$BATS_FILE_TMPDIR/$name.so
    cases | grep "^$name|" >>chosen
  done
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --threads 2 --schedule bhq --plugin "${files#,}" --kernel "$names,tiled" \
    --out all.jsonl
  expect_status 1
  holds all.jsonl 'sorted(line.split("|")[0] for line in open("chosen")) == sorted(r["kernel"] for r in records[1:-1])'
  holds all.jsonl 'all([(r["status"], reason in (r["reason"] or "")) for r in records if r["kernel"] == name] == [(status, True)]
    for name, status, reason, _ in (line.rstrip("\n").split("|") for line in open("chosen")))'
  holds all.jsonl '[r["kernel"] for r in records if r["status"] == "ok" and len(set(r["cpus"])) == 2] == ["naive", "tiled"]'
  expect_none_left
}

@test "what a kernel prints goes to stderr, never among the data" {
  printf '%s\n' '#include <stdio.h>' '#include "sound.h"' 'static int run(const struct attn_problem *p, const struct attn_args *a,' \
    '  const struct attn_span *s, int32_t n, void *t, void *c) { puts("said by a kernel"); fflush(stdout); return sound_run(p, a, s, n, t, c); }' \
    'const struct attn_kernel *const *attn_kernels(uint32_t *abi) { return sound_table(sound_kernel("prints", "prints", run), abi); }' >prints.c
  cc -shared -fPIC prints.c -I "$root/tests/broken_plugin" -o prints.so -lm
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin ./prints.so --kernel prints -o jsonl --out o.jsonl
  expect_status 0
  holds "$work/stdout" '[r["status"] for r in records] == ["ok"]'
  [[ $err == *"said by a kernel"* ]] || tell "stderr should hold it"
}
