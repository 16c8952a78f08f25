#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The surface: help of every command, refusal of what is unknown, lists, topo, doctor.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

@test "attnbench --help names every command, its columns in line, and the exit codes" {
  attempt "$ATTNBENCH" --help
  expect_status 0
  local command
  for command in run verify list topo doctor peak duet compare gate show history report export merge selftest-gate; do
    grep -qx "$command" <(listed_commands) || tell "$command should be listed"
  done
  [ "$(grep -oE '^  [a-z-]+ +' stdout | awk '{ print length }' | sort -u | wc -l)" = 1 ] || tell "summaries in one column expected"
  expect_out "0 ok" "1 wrong" "2 usage" "3 regression" "4 inconclusive" "5 results not written" "77 nothing" "130 interrupted"
  [ -z "$err" ] || tell "nothing on stderr expected"
}

@test "attnbench without a command is a usage error" {
  attempt "$ATTNBENCH"
  expect_status 2
  [ -z "$out" ] || tell "stdout should be empty"
}

@test "--help of every command goes to stdout and exits 0" {
  local command
  for command in $(listed_commands); do
    attempt "$ATTNBENCH" "$command" --help
    expect_status 0
    expect_out "$command"
    [ -z "$err" ] || tell "$command: nothing on stderr expected"
  done
}

@test "run --help names every sweep flag" {
  attempt "$ATTNBENCH" run --help
  expect_out -B -H --kv-heads -S --q-len --kv-len -D --value-dim --dtype --causal --kv-lengths --mask --bias --window \
    --softcap --scale --layout --alias --model --decode --kernel --schedule --rule --threads --place --cache --fill \
    --min-time --samples --max-time --launches --quick-check --seed --config --out -o --resume --dry-run --weights \
    --point-timeout --topology --color
}

@test "verify --help names its own flags" {
  attempt "$ATTNBENCH" verify --help
  expect_out --case --dump --cases --seed --kernel
}

@test "an unknown command is named" {
  refused frobnicate -- frobnicate
}

@test "an unknown flag of every command is named" {
  local command
  for command in $(listed_commands); do refused "$command" --frobnicate -- --frobnicate; done
}

@test "a flag without its value is named" {
  refused run --kernel -- --kernel
}

@test "list kernels shows every built-in kernel" {
  attempt "$ATTNBENCH" list kernels
  expect_status 0
  expect_out naive tiled avx2 avx512
}

@test "list kernels has a name once, with the rules and dtypes that it does" {
  attempt "$ATTNBENCH" list kernels --json
  expect_status 0
  python - "$work/stdout" <<'PY'
import json, sys
kernels = json.load(open(sys.argv[1]))["kernels"]
names = [k["name"] for k in kernels]
assert len(names) == len(set(names)), names
rules = ["scaled_dot_product", "additive", "concat", "multi_head", "self_attention", "matmul"]
for kernel in kernels:
    if kernel["name"] in ("naive", "tiled", "avx2", "avx512"):
        assert kernel["rules"] == rules and kernel["dtypes"] == ["f32", "bf16", "f16"], kernel
PY
}

@test "list rules states every rule's formulas" {
  attempt "$ATTNBENCH" list rules --json
  expect_status 0
  python - "$work/stdout" <<'PY'
import json, sys
rules = json.load(open(sys.argv[1]))["rules"]
assert [r["name"] for r in rules] == [
    "scaled_dot_product", "additive", "concat", "multi_head", "self_attention", "matmul"]
assert all(r[key] for r in rules for key in ("definition", "flops_useful", "flops_dense", "bytes_min", "tokens"))
PY
}

@test "list gives rules, schedules, placements, configs, models" {
  attempt "$ATTNBENCH" list rules
  expect_status 0
  expect_out scaled_dot_product
  attempt "$ATTNBENCH" list schedules
  expect_status 0
  expect_out auto serial bh bhq splitkv own
  attempt "$ATTNBENCH" list placements
  expect_status 0
  expect_out compact scatter none
  attempt "$ATTNBENCH" list configs
  expect_status 0
  expect_out quick models ci full masks rules layers seeds
  attempt "$ATTNBENCH" list models
  expect_status 0
  expect_out bert-base gpt2 llama-3-8b
}

@test "list of something unknown is refused" {
  refused list frobnicate -- frobnicate
}

@test "topo --json is JSON and counts what is here" {
  attempt "$ATTNBENCH" topo --json
  expect_status 0
  python -c 'import json, sys
t = json.load(open(sys.argv[1]))
assert t["cores"] >= 1 and t["pus"] >= t["cores"] and t["packages"] >= 1, t' "$work/stdout"
}

@test "topo reads a synthetic machine" {
  attempt "$ATTNBENCH" topo --json --topology "pack:2 core:8 pu:2"
  expect_status 0
  python -c 'import json, sys
t = json.load(open(sys.argv[1]))
assert (t["packages"], t["cores"], t["pus"]) == (2, 16, 32), t' "$work/stdout"
}

@test "doctor ends with 0 and looks at load, huge pages, SMT" {
  attempt "$ATTNBENCH" doctor
  expect_status 0
  [[ ${out,,} == *load* && ${out,,} == *thp* && ${out,,} == *smt* ]] || tell "topics missing"
}

@test "colour comes only where it is wanted" {
  attempt "$ATTNBENCH" doctor
  [[ $out != *$'\e['* ]] || tell "no colour in a pipe"
  attempt "$ATTNBENCH" doctor --color never
  [[ $out != *$'\e['* ]] || tell "--color never"
  attempt env NO_COLOR=1 "$ATTNBENCH" doctor
  [[ $out != *$'\e['* ]] || tell "NO_COLOR"
}
