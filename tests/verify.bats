#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Right or wrong: every kernel over seeded problems, the golden cases, and planted faults that must be caught by name.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

@test "every kernel is right over at least 400 seeded problems, and 100 of each other rule" {
  local cases=()
  [ "$MODE" = release ] || cases=(--cases 10)
  LIMIT=500 attempt "$ATTNBENCH" verify "${cases[@]}"
  expect_status 0
  expect_out naive tiled avx2 avx512
  [ "$MODE" != release ] || grep -qE '(^|[^0-9])([4-9][0-9][0-9]|[0-9]{4,})([^0-9]|$)' "$work/stdout" ||
    tell "a count of 400 or more expected"
}

@test "verify takes the sweep's flags" {
  attempt "$ATTNBENCH" verify -B 2 -H 4 --kv-heads 2 --q-len 0,1,17 --kv-len 0,1,33 -D 1,19 --value-dim 7 \
    --causal none,top_left,bottom_right --kernel naive,tiled
  expect_status 0
  expect_out naive tiled
}

@test "the same seed gives the same problems" {
  attempt "$ATTNBENCH" verify --cases 5 --seed 3 --kernel naive
  expect_status 0
  local first=$out
  attempt "$ATTNBENCH" verify --cases 5 --seed 3 --kernel naive
  [ "$out" = "$first" ] || tell "differs from: $first"
}

@test "--rule keeps the suite to that rule" {
  attempt "$ATTNBENCH" verify --rule matmul,concat --cases 4
  expect_status 0
  expect_out naive tiled avx2 avx512 "8 problems"
}

@test "every golden case of every rule is right in every kernel that claims the rule" {
  local case count=0 here
  here=$("$ATTNBENCH" list kernels --json |
    python3 -c 'import json, sys; print(*[k["name"] for k in json.load(sys.stdin)["kernels"] if k["runs_here"]])')
  [[ " $here " == *" naive tiled "* ]]
  for case in "$root"/tests/golden/*/; do
    attempt "$ATTNBENCH" verify --case "$case"
    expect_status 0 || { echo "$case"; return 1; }
    expect_out naive tiled avx2 avx512
    # f32 is done by all that run here but the kernel that is for bf16 alone.
    awk -v here=" $here " '/^(naive|tiled|avx2|avx512) / && index(here, " " $1 " ") && $2 != 1 { print; bad = 1 }
      END { exit bad }' "$work/stdout" ||
      { echo "not checked in $case"; return 1; }
    count=$((count + 1))
  done
  [ "$count" -ge 38 ]
}

@test "every planted fault is caught in the kernel that bears it" {
  [ "$MODE" = release ] || skip "a sanitizer would catch some of them first"
  local names rule of_rule name missed=
  names=$(cd "$root/tests/broken" && printf '%s\n' *.c | sed 's/\.c$//')
  [ "$(wc -l <<<"$names")" -ge 14 ]
  attempt "$BROKEN" list kernels --json
  cp "$work/stdout" "$work/kernels.json"
  for rule in scaled_dot_product additive concat multi_head self_attention matmul; do
    # Each by the first rule that it does: layers are put together from kernels of scaled_dot_product too.
    of_rule=$(python -c 'import json, sys
first = {k["name"]: k["rules"][0] for k in json.load(open(sys.argv[1]))["kernels"]}
print(",".join(n for n in sys.argv[3].split() if first[n] == sys.argv[2]))' "$work/kernels.json" "$rule" "$names")
    [ -n "$of_rule" ] || continue
    LIMIT=500 attempt "$BROKEN" verify --rule "$rule" --kernel "$of_rule"
    expect_status 1
    # A line a kernel: name, checked, wrong, failed, skipped, largest error / bound.
    for name in ${of_rule//,/ }; do
      awk -v name="$name" '$1 == name && $3 + $4 > 0 { found = 1 } END { exit !found }' "$work/stdout" ||
        missed="$missed $name"
    done
  done
  [ -z "$missed" ] || tell "not caught:$missed"
}

@test "a kernel with a planted fault by itself: 1, named with the line that shows it again" {
  attempt "$BROKEN" verify --kernel drops_last_key --cases 20
  expect_status 1
  expect_out "wrong: drops_last_key: " "attnbench verify -B "
}

@test "a run with a wrong kernel: a record without rates, exit 1, the others go on" {
  local name=drops_last_key
  attempt "$BROKEN" run "${cheap[@]}" -S 33 -D 16 --kernel "naive,$name" --threads 1 --out "$work/out.jsonl"
  expect_status 1
  valid_journal "$work/out.jsonl"
  holds "$work/out.jsonl" "{r['kernel']: r['status'] for r in records} == {'naive': 'ok', '$name': 'wrong'}"
  holds "$work/out.jsonl" 'all(r["gflops"] is None for r in records if r["status"] == "wrong")'
}

@test "--dump writes a failing case that reads back and fails again" {
  local name=drops_last_key
  attempt "$BROKEN" verify -S 33 -D 16 --kernel "$name" --dump "$work/dump"
  expect_status 1
  local case
  case=$(dirname "$(find "$work/dump" -name case.json | head -n 1)")
  attempt "$BROKEN" verify --case "$case" --kernel "$name"
  expect_status 1
  attempt "$BROKEN" verify --case "$case" --kernel naive,tiled
  expect_status 0
  python -c 'import json, sys; c = json.load(open(sys.argv[1])); assert c["kv_len"] == 33, c' "$case/case.json"
}
