#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Bad input: a one-line error that names the culprit, the right exit code, nothing lost.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

config() { # writes $work/bad.yaml from stdin
  cat >"$work/bad.yaml"
}

@test "unknown kernel" {
  refused run --kernel frobnicate -S 16 -- frobnicate
}

@test "kernel glob that matches nothing" {
  refused run --kernel 'zz*' -S 16 -- 'zz*'
}

@test "unknown flag" {
  refused run --frobnicate 3 -- --frobnicate
}

@test "unknown config" {
  refused run --config frobnicate -- frobnicate
}

@test "config file that is not there" {
  refused run --config "$work/none.yaml" -- none.yaml
}

@test "unknown key in a config names file and line" {
  config <<'YAML'
name: bad
sweeps:
  - name: one
    S: [16]
    frobnicate: [3]
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml:5 frobnicate
}

@test "wrong type in a config names file and line" {
  config <<'YAML'
name: bad
sweeps:
  - name: one
    S: {a: 16}
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml:4
}

@test "bad value in a config names file, line and value" {
  config <<'YAML'
name: bad
sweeps:
  - name: one
    S: [16, many]
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml:4 many
}

@test "empty list in a config names file and line" {
  config <<'YAML'
name: bad
sweeps:
  - name: one
    S: []
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml:4 S
}

@test "key given twice in a config" {
  config <<'YAML'
name: bad
sweeps:
  - name: one
    S: [16]
    S: [32]
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml:5 S
}

@test "empty config" {
  config </dev/null
  refused run --config "$work/bad.yaml" -- bad.yaml
}

@test "config that is not YAML" {
  printf 'name: [unclosed\n' | config
  refused run --config "$work/bad.yaml" -- bad.yaml
}

@test "alias that holds itself in a config" {
  config <<'YAML'
name: bad
sweeps: &all
  - *all
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml
}

@test "-S 0" {
  refused run -S 0 -- -S 0
}

@test "-S abc" {
  refused run -S abc -- -S abc
}

@test "-B -1" {
  refused run -B -1 -S 16 -- -B -1
}

@test "-D 0" {
  refused run -D 0 -S 16 -- -D 0
}

@test "number beyond 64 bits" {
  refused run -S 99999999999999999999 -- -S 99999999999999999999
}

@test "H not a multiple of kv-heads" {
  refused run -H 3 --kv-heads 2 -S 16 -- 3 2
}

@test "kv-lengths of the wrong count" {
  refused run -B 3 -S 16 --kv-lengths 4:8 -- kv-lengths
}

@test "kv-length beyond the keys" {
  refused run -B 1 -S 16 --kv-lengths 17 -- 17
}

@test "one-sided window without causal" {
  refused run -S 16 --window 4 -- window
}

@test "mask share out of range" {
  refused run -S 16 --mask random:1.5 -- --mask 1.5
}

@test "unknown words: dtype, causal, layout, cache, fill, rule, schedule, format, model" {
  refused run -S 16 --dtype f13 -- --dtype f13
  refused run -S 16 --causal sideways -- --causal sideways
  refused run -S 16 --layout DSBH -- --layout DSBH
  refused run -S 16 --cache lukewarm -- --cache lukewarm
  refused run -S 16 --fill sand -- --fill sand
  refused run -S 16 --rule thumb -- --rule thumb
  refused run -S 16 --schedule tuesdays -- --schedule tuesdays
  refused run -S 16 -o parchment -- parchment
  refused run --model frobnicate -- frobnicate
}

@test "sizes that a rule does not have" {
  refused run --hidden 8 -- --hidden scaled_dot_product
  refused run --rule matmul -S 16 -- -S matmul
  refused run --rule matmul --weights -- --weights matmul
  refused run --rule additive --scale 2 -- --scale additive
  refused run --rule concat --bias -- --bias concat
  refused run --rule concat --out-dim 8 -- --out-dim concat combine
  refused run --rule self_attention --no-mha -H 4 -- -H no-mha
  refused run --rule self_attention --q-len 4 -- --q-len self_attention
  refused run --rule matmul,concat --hidden 8 -- --hidden rules
  refused run --rule multi_head gpt2 -- model scaled_dot_product
}

@test "sizes of zero, or none, in every rule" {
  refused run --rule additive --hidden 0 -- --hidden 0
  refused run --rule concat --key-dim 0 -- --key-dim 0
  refused run --rule concat --combine --out-dim -1 -- --out-dim -1
  refused run --rule multi_head --model-dim 0 -- --model-dim 0
  refused run --rule multi_head --out-dim many -- --out-dim many
  refused run --rule self_attention --input-dim 0 -- --input-dim 0
  refused run --rule matmul -M 0 -- -M 0
  refused run --rule matmul -N 0 -- -N 0
  refused verify --rule matmul -K 0 -- -K 0
}

@test "sizes of a rule that do not match each other" {
  refused run --rule multi_head -H 3 --kv-heads 2 -- 3 2
  refused run --rule multi_head --alias qkv --model-dim 8 --model-dim-v 9 -- model-dim 8 9
  refused run --rule multi_head --alias qkv --q-len 8 --kv-len 9 -- q-len 8 9
  refused run --rule additive --alias kv --key-dim 8 --value-dim 9 -- key-dim 8 9
  refused run --rule matmul --semantics dot --broadcast a -- dot broadcast
  refused run --rule matmul --semantics dot -H 2 -- dot 2
  refused run --rule matmul --broadcast c -- --broadcast c
  refused run --rule matmul --semantics einsum -- --semantics einsum
}

@test "key of another rule in a config names file and line" {
  config <<'YAML'
name: bad
sweeps:
  - rule: matmul
    M: 16
    causal: top_left
YAML
  refused run --config "$work/bad.yaml" -- bad.yaml:5 causal matmul
}

@test "ranges that never end" {
  refused run -S 128-4096x1 -- 128-4096x1
  refused run -S 128-4096+0 -- 128-4096+0
  refused run -S 1-10x0 -- 1-10x0
  refused run -S 4096-128x2 -- 4096-128x2
}

@test "10^12 points are counted, not made" {
  LIMIT=10 refused run -S 1-1000000+1 -B 1-1000000+1 -- points
}

@test "bad effort: times and counts" {
  refused run -S 16 --min-time 0 -- --min-time 0
  refused run -S 16 --min-time soon -- --min-time soon
  refused run -S 16 --samples -5 -- --samples -5
  refused run -S 16 --samples x -- --samples x
  refused run -S 16 --launches 0 -- --launches 0
  refused run -S 16 --threads 0 -- --threads 0
}

@test "placement that does not exist here" {
  refused run -S 16 --place core:100000 -- core:100000
  refused run -S 16 --place everywhere -- everywhere
}

@test "ATTNBENCH_ISA that is not understood" {
  attempt env ATTNBENCH_ISA=mmx "$ATTNBENCH" list kernels
  expect_refusal 2 ATTNBENCH_ISA mmx
}

@test "topology file that is none" {
  echo nonsense >"$work/machine.xml"
  refused topo --topology "$work/machine.xml" -- machine.xml
}

@test "timing on another machine's topology is refused" {
  attempt "$ATTNBENCH" run -S 16 --topology "pack:1 core:4 pu:1"
  [ "$status" != 0 ] || tell "no timing on a foreign topology"
  [ -z "$out" ] || tell "stdout should be empty"
}

@test "--out that cannot be written: 5, before anything is timed" {
  LIMIT=20 attempt "$ATTNBENCH" run -S 16 --out "$work/no/such/folder/out.jsonl"
  expect_refusal 5 no/such/folder/out.jsonl
  LIMIT=20 attempt "$ATTNBENCH" run -S 16 --out "$work"
  expect_refusal 5 "$work"
}

@test "--out that holds results already is not overwritten" {
  echo precious >"$work/out.jsonl"
  attempt "$ATTNBENCH" run -S 16 --out "$work/out.jsonl"
  [ "$status" != 0 ] || tell "should refuse"
  [[ $err == *out.jsonl* ]] || tell "should name the file"
  [ "$(<"$work/out.jsonl")" = precious ]
}

# Whatever a full disk left: whole lines, each valid.
whole_lines() {
  python - "$1" <<'PY'
import json, sys
data = open(sys.argv[1], "rb").read()
assert data.endswith(b"\n"), "a torn last line"
lines = [json.loads(line) for line in data.splitlines()]
assert lines[0]["schema"] == "attnbench.context/1"
print(len(lines), "lines")
PY
}

@test "full disk (small tmpfs): 5, what was written stays" {
  mkdir "$work/disk"
  mount -t tmpfs -o size=12k tmpfs "$work/disk" 2>/dev/null || skip "no tmpfs can be mounted here"
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16-128+16 -D 16 --kernel naive --out "$work/disk/out.jsonl" || true
  cp "$work/disk/out.jsonl" "$work/kept.jsonl"
  umount "$work/disk"
  expect_status 5
  [[ $err == *out.jsonl* ]] || tell "should name the file"
  whole_lines "$work/kept.jsonl"
}

@test "file size limit: 5, what was written stays" {
  attempt bash -c 'ulimit -f 64; exec "$@"' limited \
    "$ATTNBENCH" run "${cheap[@]}" -S 4-64+1 -D 8 --kernel naive --out "$work/out.jsonl"
  expect_status 5
  [[ $err == *out.jsonl* ]] || tell "should name the file"
  whole_lines "$work/out.jsonl"
}

@test "stdout that is full: 5" {
  [ -w /dev/full ] || skip "no /dev/full here"
  status=0
  timeout 60 "$ATTNBENCH" list kernels >/dev/full 2>"$work/stderr" || status=$?
  [ "$status" = 5 ]
}

journal() { # a finished small run in $work/run.jsonl
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16,32 -D 16 --kernel naive --out "$work/run.jsonl"
  expect_status 0
}

@test "--resume of a file that is not there" {
  refused run -S 16 --resume "$work/none.jsonl" -- none.jsonl
}

@test "--resume of a foreign file leaves it as it was" {
  printf '{"benchmarks": []}\n' >"$work/foreign.jsonl"
  cp "$work/foreign.jsonl" "$work/before"
  refused run -S 16 --resume "$work/foreign.jsonl" -- foreign.jsonl
  cmp "$work/foreign.jsonl" "$work/before"
}

@test "--resume of a file that is no text" {
  head -c 4096 /dev/urandom >"$work/noise.jsonl"
  refused run -S 16 --resume "$work/noise.jsonl" -- noise.jsonl
}

@test "--resume of an empty file" {
  : >"$work/empty.jsonl"
  refused run -S 16 --resume "$work/empty.jsonl" -- empty.jsonl
}

@test "--resume of a journal cut inside its first line" {
  journal
  head -c 100 "$work/run.jsonl" >"$work/cut.jsonl"
  refused run -S 16 --resume "$work/cut.jsonl" -- cut.jsonl
}

@test "--resume of a journal broken in the middle names the line" {
  journal
  sed '2s/.*/{"schema": "attnbench.res/' "$work/run.jsonl" >"$work/hole.jsonl"
  refused run -S 16,32 -D 16 --kernel naive --resume "$work/hole.jsonl" -- hole.jsonl:2
}

@test "--resume of a journal cut inside its last line goes on" {
  journal
  head -c -40 "$work/run.jsonl" >"$work/cut.jsonl"
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16,32 -D 16 --kernel naive --resume "$work/cut.jsonl"
  expect_status 0
  holds "$work/cut.jsonl" 'len(contexts) == 2 and sorted(r["S_q"] for r in records) == [16, 32]'
}

@test "show and export of what is no results file" {
  echo nonsense >"$work/bad.jsonl"
  refused show "$work/bad.jsonl" -- bad.jsonl
  refused export "$work/bad.jsonl" --format csv -- bad.jsonl
  refused show "$work/none.jsonl" -- none.jsonl
}

# ---- case folders ----------------------------------------------------------------------------------------------------

broken_case() { # WHAT STRING...: a good case spoilt in one way is refused, naming the strings
  local what=$1
  shift
  python "$root/tests/make_case.py" "$work/case" --break "$what"
  refused verify --case "$work/case" -- "$@"
}

@test "case folder that is not there" {
  refused verify --case "$work/none" -- none
}

@test "the case that the next tests spoil is good" {
  python "$root/tests/make_case.py" "$work/case"
  attempt "$ATTNBENCH" verify --case "$work/case"
  expect_status 0
}

@test "case.json that is missing" {
  broken_case no-json case.json
}

@test "case.json that is not JSON" {
  broken_case json-syntax case.json
}

@test "case.json without its inputs" {
  broken_case no-inputs case.json inputs
}

@test "case.json with a wrong type" {
  broken_case json-type case.json
}

@test "case.json with heads that do not divide" {
  broken_case heads case.json
}

@test "case.json with an unknown rule" {
  broken_case rule case.json frobnicate
}

@test ".npy that is missing" {
  broken_case no-npy k.npy
}

@test ".npy with a wrong magic" {
  broken_case npy-magic k.npy
}

@test ".npy cut short" {
  broken_case npy-short k.npy
}

@test ".npy of another shape" {
  broken_case npy-shape k.npy
}

@test ".npy of a type that is not read" {
  broken_case npy-type k.npy
}

@test ".npy in Fortran order" {
  broken_case npy-fortran k.npy
}

@test ".npy with a header that is cut" {
  broken_case npy-header k.npy
}

@test ".npy with a shape whose product overflows" {
  broken_case npy-huge k.npy
}

# A golden case with one change to case.json, in Python: c is the whole of it.
changed_case() { # CASE CHANGE STRING...
  local case=$1 change=$2
  shift 2
  rm -rf "$work/case"
  cp -r "$root/tests/golden/$case" "$work/case"
  python - "$work/case/case.json" "$change" <<'PY'
import json, sys
c = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(c, open(sys.argv[1], "w"))
PY
  refused verify --case "$work/case" -- case.json "$@"
}

@test "cases of other rules: a missing weight, a size that does not match, no hidden units" {
  changed_case mha_seed 'del c["inputs"]["w_o"]' inputs.w_o
  changed_case mha_seed 'del c["inputs"]["w_q_bias"]' inputs.w_q_bias
  changed_case self_seed 'del c["inputs"]["w_self_v"]' inputs.w_self_v
  changed_case concat_seed 'del c["inputs"]["w_out"]' inputs.w_out
  changed_case additive_bahdanau 'del c["inputs"]["w"]' inputs.w
  changed_case additive_bahdanau 'c["hidden_dim"] = 0' hidden 0
  changed_case mha_seed 'c["model_dim_k"] = 127' q.npy 127
  changed_case mha_seed 'c["head_dim"] = 255' w_q.npy 2040
  changed_case self_seed 'c["input_dim"] = 81' x.npy 81
  changed_case additive_bahdanau 'c["key_dim"] = "wide"' key_dim
  changed_case bmm_seed 'c["inputs"]["b"] = c["inputs"]["a"]' inputs.a inputs.b
  changed_case bmm_seed 'del c["inputs"]["b"]' inputs.b
  changed_case dot_nd 'c["semantics"] = "einsum"' einsum
  changed_case dot_nd 'c["semantics"] = "matmul"' "do not broadcast"
}

@test "NaN inputs: the answer is NaN, in every kernel" {
  python "$root/tests/make_case.py" "$work/case" --nan q
  attempt "$ATTNBENCH" verify --case "$work/case"
  expect_status 0
}

@test "NaN in keys and values that are masked out does not matter" {
  python "$root/tests/make_case.py" "$work/case" --nan padding
  attempt "$ATTNBENCH" verify --case "$work/case"
  expect_status 0
}

@test "a case whose expected answer is wrong ends with 1 and tells" {
  python "$root/tests/make_case.py" "$work/case" --break expect
  attempt "$ATTNBENCH" verify --case "$work/case"
  expect_status 1
  [[ $out$err == *naive* ]] || tell "should name the kernel"
}
