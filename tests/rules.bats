#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The other rules and the layers, as a user runs them.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

@test "a run of every rule and layer: valid records, work by phase, a command that repeats each" {
  attempt "$ATTNBENCH" run "${cheap[@]}" --rule scaled_dot_product,additive,concat,multi_head,self_attention,matmul \
    -B 2 -S 12 -D 8 --hidden 5 --combine --no-mha=true,false -M 9 -N 7 -K 5 --semantics matmul,dot --kernel naive,tiled \
    --threads 1 --out "$work/out.jsonl"
  expect_status 0
  valid_journal "$work/out.jsonl"
  holds "$work/out.jsonl" 'len(records) == 16 and all(r["status"] == "ok" and r["roof_gflops"] for r in records)'
  holds "$work/out.jsonl" 'all((r["tanh_count"] or 0) == (2 * 12 * 12 * 5 if r["rule"] == "additive" else 0) for r in records)'
  holds "$work/out.jsonl" 'all((r["tokens_per_s"] is None) == (r["rule"] == "matmul") for r in records)'
  holds "$work/out.jsonl" 'all("projections" in r["phases_ns"] and "attention" in r["phases_ns"] for r in records
    if r["rule"] in ("additive", "multi_head", "self_attention"))'
  local id line count=0
  while read -r id; do
    attempt "$ATTNBENCH" show "$work/out.jsonl" "$id"
    line=$(sed -n 's/^reproduce: attnbench //p' "$work/stdout")
    # shellcheck disable=SC2086 # flags are words
    attempt "$ATTNBENCH" $line --dry-run
    expect_out "$id"
    count=$((count + 1))
  done < <(python -c 'import json, sys
for line in open(sys.argv[1]):
    if "point_id" in json.loads(line): print(json.loads(line)["point_id"])' "$work/out.jsonl")
  [ "$count" = 16 ]
}
