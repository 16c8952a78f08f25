#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Nothing is lost: kill -9 of the coordinator and of its children at random moments, and --resume.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

sweep=("${cheap[@]}" -S "16,32,48" -D 16 --kernel naive --threads 1)

@test "kill -9 of the coordinator at 20 random moments" {
  LIMIT=400 attempt python3 "$root/tests/kill_test.py" "$ATTNBENCH" --victim coordinator
  expect_status 0
  expect_out "coordinator: 20 moments"
}

@test "kill -9 of a worker at 20 random moments" {
  LIMIT=400 attempt python3 "$root/tests/kill_test.py" "$ATTNBENCH" --victim worker
  expect_status 0
  expect_out "worker: 20 moments"
}

@test "--resume measures what is missing, once" {
  attempt "$ATTNBENCH" run "${sweep[@]}" --out "$work/out.jsonl"
  expect_status 0
  head -n 2 "$work/out.jsonl" >"$work/part.jsonl"
  attempt "$ATTNBENCH" run "${sweep[@]}" --resume "$work/part.jsonl"
  expect_status 0
  holds "$work/part.jsonl" 'len(contexts) == 2 and [r["S_q"] for r in records] == [16, 32, 48]'
  [ "$(sed -n 2p "$work/part.jsonl")" = "$(sed -n 2p "$work/out.jsonl")" ]
  valid_journal "$work/part.jsonl"
}

@test "--resume by itself goes on with the command of the file" {
  attempt "$ATTNBENCH" run "${sweep[@]}" --out "$work/out.jsonl"
  head -n 2 "$work/out.jsonl" >"$work/part.jsonl"
  attempt "$ATTNBENCH" run --resume "$work/part.jsonl"
  expect_status 0
  holds "$work/part.jsonl" '[(r["S_q"], len(r["samples_ns"])) for r in records] == [(16, 3), (32, 3), (48, 3)]'
}

@test "--resume of a finished run measures nothing" {
  attempt "$ATTNBENCH" run "${sweep[@]}" --out "$work/out.jsonl"
  grep attnbench.result "$work/out.jsonl" >"$work/before"
  attempt "$ATTNBENCH" run "${sweep[@]}" --resume "$work/out.jsonl"
  expect_status 0
  grep attnbench.result "$work/out.jsonl" | cmp - "$work/before"
}

@test "two writers of one journal: the second is refused" {
  "$ATTNBENCH" run -S 64-512+64 --kernel naive --threads 1 --out "$work/out.jsonl" >"$work/first" 2>&1 &
  local first=$!
  while [ ! -s "$work/out.jsonl" ] && kill -0 "$first" 2>/dev/null; do sleep 0.05; done
  attempt "$ATTNBENCH" run "${sweep[@]}" --resume "$work/out.jsonl"
  kill -KILL "$first"
  wait "$first" || true
  [ "$status" = 5 ] || [ "$status" = 2 ] || tell "2 or 5 expected"
  [[ $err == *out.jsonl* ]] || tell "should name the file"
}
