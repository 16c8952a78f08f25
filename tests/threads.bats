#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Threaded sweeps of small problems: what the thread sanitizer watches.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

@test "every kernel with bh, bhq and splitkv on two threads" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -B 2 -S 48 -D 16 -H 4 --kv-heads 2 --causal none,bottom_right \
    --kernel 'naive,tiled,avx2,avx512' --schedule bh,bhq,splitkv --threads 2 --out "$work/out.jsonl"
  [ "$(nproc)" -ge 2 ] || skip "one CPU only"
  expect_status 0
  holds "$work/out.jsonl" 'len(records) == 24 and all(r["status"] == "ok" or r["reason"] for r in records)'
  holds "$work/out.jsonl" 'any(r["status"] == "ok" and len(set(r["cpus"])) == 2 for r in records)'
}

@test "verify on two threads" {
  [ "$(nproc)" -ge 2 ] || skip "one CPU only"
  attempt "$ATTNBENCH" verify -B 2 -S 33 -D 17 -H 4 --kv-heads 2 --causal none,bottom_right --threads 2 \
    --schedule bh,bhq,splitkv
  expect_status 0
}
