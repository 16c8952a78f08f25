#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The main job: what is planned, what is timed, what comes out, and in which form.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

small=(-S "16,32" -D 16 -H 2 --kernel "naive,tiled")

@test "each combination of a sweep stands once in the results, verified, on the CPUs asked for" {
  [ "$MODE" = release ] || skip "256 points are too many under a sanitizer"
  LIMIT=400 attempt "$ATTNBENCH" run "${cheap[@]}" --kernel 'naive,tiled,avx2,avx512' -B 1,2 -H 4 -S 64-512x2 -D 64,80 \
    --threads 1,2 --causal none,bottom_right --out "$work/out.jsonl"
  expect_status 0
  valid_journal "$work/out.jsonl"
  holds "$work/out.jsonl" 'len(records) == 4 * 2 * 4 * 2 * 2 * 2'
  holds "$work/out.jsonl" 'len({r["point_id"] for r in records}) == len(records)'
  holds "$work/out.jsonl" 'collections.Counter((r["kernel"], r["B"], r["H"], r["S_q"], r["S_kv"], r["D"], r["threads"],
    r["causal"]) for r in records) == collections.Counter((k, B, 4, S, S, D, t, c)
    for k in ("naive", "tiled", "avx2", "avx512") for B in (1, 2) for S in (64, 128, 256, 512) for D in (64, 80)
    for t in (1, 2) for c in ("none", "bottom_right"))'
  holds "$work/out.jsonl" 'all(r["status"] in ("ok", "skipped") for r in records)'
  holds "$work/out.jsonl" 'all(r["verified"] in ("full", "sampled") and r["rows_checked"] > 0 and len(set(r["cpus"])) ==
    r["threads"] == len(r["cpus"]) and r["schedule"] == ("serial" if r["threads"] == 1 else "bhq")
    for r in records if r["status"] == "ok")'
  holds "$work/out.jsonl" 'all(r["kernel"] in ("avx2", "avx512") or r["threads"] == 2 for r in records if r["status"] == "skipped")'
}

@test "a record holds samples, interval and roof that fit together" {
  attempt "$ATTNBENCH" run --samples 7 --min-time 0.01s -S 64 -D 32 -H 2 --kernel tiled --threads 1 --out "$work/out.jsonl"
  expect_status 0
  valid_journal "$work/out.jsonl"
  holds "$work/out.jsonl" 'len(records) == 1 and len(records[0]["samples_ns"]) == 7'
  holds "$work/out.jsonl" '(lambda r: r["min_ns"] == min(r["samples_ns"]) and r["median_ns"] == sorted(r["samples_ns"])[3]
    and r["ci95_low_ns"] <= r["median_ns"] <= r["ci95_high_ns"] and r["ci_scope"] == "within_process")(records[0])'
  holds "$work/out.jsonl" '(lambda r: r["flops_useful"] == 4 * 32 * 2 * 64 * 64
    and abs(r["gflops"] - r["flops_useful"] / r["median_ns"]) < 1e-6 * r["gflops"]
    and r["bytes_min"] == 4 * (4 * 2 * 64 * 32) and r["roof_gflops"] > 0 and r["roof_bound"] is not None
    and (r["roof_fraction"] is None and r["noise"]["quality"] == "noisy" or 0 < r["roof_fraction"] <= 1.02))(records[0])'
}

@test "one flag of the problem at a time: useful FLOPs of causal, lengths, window; GQA bytes" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 64 -D 16 --kernel naive --threads 1 --causal top_left --out "$work/a.jsonl"
  holds "$work/a.jsonl" 'records[0]["flops_useful"] == 2 * 32 * 64 * 65 // 2 and records[0]["flops_dense"] == 2 * 32 * 64 * 64'
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 64 -D 16 --kernel naive --threads 1 --kv-lengths 10 --out "$work/b.jsonl"
  holds "$work/b.jsonl" 'records[0]["flops_useful"] == 2 * 32 * 64 * 10'
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 64 -D 16 --kernel naive --threads 1 --window 1:0 --out "$work/c.jsonl"
  holds "$work/c.jsonl" 'records[0]["flops_useful"] == 2 * 32 * 64'
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 64 -D 16 -H 4 --kv-heads 2 --kernel naive --threads 1 --out "$work/d.jsonl"
  holds "$work/d.jsonl" 'records[0]["H_kv"] == 2 and records[0]["bytes_min"] == 4 * 64 * 16 * (4 + 2 + 2 + 4)'
  attempt "$ATTNBENCH" run "${cheap[@]}" --q-len 4 --kv-len 64 -D 16 --value-dim 24 --kernel naive --threads 1 \
    --out "$work/e.jsonl"
  holds "$work/e.jsonl" '(records[0]["S_q"], records[0]["S_kv"], records[0]["D_v"]) == (4, 64, 24)'
}

@test "every layout, alias, fill and mask runs and is right" {
  local file=$work/out.jsonl
  attempt "$ATTNBENCH" run "${cheap[@]}" -B 2 -S 24 -D 16 -H 2 --kernel naive,tiled --threads 1 --layout BHSD,BSHD,HBSD \
    --fill normal,huge,equal,dominant --out "$file"
  expect_status 0
  holds "$file" 'len(records) == 24 and all(r["status"] == "ok" for r in records)'
  rm "$file"
  attempt "$ATTNBENCH" run "${cheap[@]}" -B 2 -S 24 -D 16 -H 2 --kernel naive,tiled --threads 1 --alias none,kv,qkv \
    --mask none,random:0.5 --kv-lengths full,ragged --bias --softcap 20 --window 8:4 --out "$file"
  expect_status 0
  holds "$file" 'len(records) == 24 and all(r["status"] == "ok" for r in records)'
  rm "$file"
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 24 -D 16 --kernel naive,tiled --weights --schedule serial,splitkv \
    --threads 1 --out "$file"
  expect_status 0
  holds "$file" 'sorted((r["kernel"], r["schedule"], r["status"]) for r in records) == [("naive", "serial", "ok"),
    ("naive", "splitkv", "skipped"), ("tiled", "serial", "ok"), ("tiled", "splitkv", "skipped")]'
}

@test "cold cache is recorded as such" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 64 -D 16 --kernel naive --threads 1 --cache warm,cold --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" 'sorted(r["cache"] for r in records) == ["cold", "warm"] and all(r["status"] == "ok" for r in records)'
}

@test "stdout as jsonl, csv, json, md; the table by default" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1
  expect_status 0
  expect_out naive tiled
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1 -o jsonl
  expect_status 0
  holds "$work/stdout" 'len(contexts) == 1 and len(records) == 4'
  valid_journal "$work/stdout"
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1 -o csv
  expect_status 0
  python -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert len(rows) == 4 and all(float(r["median_ns"]) > 0 and r["status"] == "ok" for r in rows), rows' "$work/stdout"
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1 -o json
  expect_status 0
  python -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/stdout"
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1 -o md
  expect_status 0
  grep -q '^|.*---' "$work/stdout" || tell "a Markdown table expected"
}

@test "progress is one plain line a point where stderr is no terminal" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1
  [[ $err != *$'\r'* && $err != *$'\e['* ]] || tell "no bar and no colour in a file"
  [ "$(grep -c -E 'naive|tiled' "$work/stderr")" = 4 ] || tell "four lines expected"
}

@test "show and export give the run again" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${small[@]}" --threads 1 --out "$work/out.jsonl"
  local table=$out format
  attempt "$ATTNBENCH" show "$work/out.jsonl"
  expect_status 0
  [ "$out" = "$table" ] || tell "show should print the table that run printed: $table"
  for format in csv json md; do
    attempt "$ATTNBENCH" export "$work/out.jsonl" --format "$format"
    expect_status 0
    expect_out naive tiled
  done
}

@test "the repro line of a point gives the same point" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 24 -D 16 -H 4 --kv-heads 2 --causal bottom_right --kernel tiled --threads 1 \
    --seed 7 --out "$work/a.jsonl"
  expect_status 0
  local id line
  id=$(sed -n '2s/.*"point_id": *"\([0-9a-f]*\)".*/\1/p' "$work/a.jsonl")
  attempt "$ATTNBENCH" show "$work/a.jsonl" "$id"
  expect_status 0
  line=$(sed -n 's/^reproduce: attnbench //p' "$work/stdout")
  # shellcheck disable=SC2086 # the flags of the line
  attempt "$ATTNBENCH" $line "${cheap[@]}" --out "$work/b.jsonl"
  expect_status 0
  holds "$work/b.jsonl" "[r['point_id'] for r in records] == ['$id']"
}

@test "same seed, same points and errors; another seed, other data" {
  local seed
  for seed in 5 5 6; do
    attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1 --seed "$seed" -o jsonl
    python - "$work/stdout" <<'PY' >>"$work/seen"
import json, sys
record = json.loads(open(sys.argv[1]).read().splitlines()[1])
print(record["point_id"], record["max_abs_err"], record["rms_err"])
PY
  done
  [ "$(sed -n 1p "$work/seen")" = "$(sed -n 2p "$work/seen")" ]
  [ "$(sed -n 1p "$work/seen")" != "$(sed -n 3p "$work/seen")" ]
}

@test "ATTNBENCH_ISA lowers what can run, with the reason" {
  attempt env ATTNBENCH_ISA=scalar "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --threads 1 --out "$work/scalar.jsonl"
  expect_status 0
  holds "$work/scalar.jsonl" 'all((r["status"] == "ok") == (r["kernel"] in ("naive", "tiled")) for r in records)'
  holds "$work/scalar.jsonl" 'all("avx" in r["reason"].lower() for r in records if r["status"] == "skipped")'
  holds "$work/scalar.jsonl" 'any(r["status"] == "skipped" for r in records)'
  attempt env ATTNBENCH_ISA=avx2 "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --threads 1 --out "$work/avx2.jsonl"
  expect_status 0
  holds "$work/avx2.jsonl" 'all(r["status"] == "skipped" for r in records if r["kernel"] == "avx512")'
}

@test "kernels that this machine cannot run: 77" {
  attempt env ATTNBENCH_ISA=scalar "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --threads 1 --kernel avx512
  expect_status 77
}

@test "OpenMP's variables change neither plan nor CPUs" {
  local with without
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1,max --out "$work/without.jsonl"
  expect_status 0
  OMP_PROC_BIND=true OMP_PLACES=cores OMP_NUM_THREADS=1 attempt \
    "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1,max --out "$work/with.jsonl"
  expect_status 0
  cpus='import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    if "point_id" in r: print(r["point_id"], r["threads"], r["cpus"])'
  without=$(python -c "$cpus" "$work/without.jsonl" | sort)
  with=$(python -c "$cpus" "$work/with.jsonl" | sort)
  [ "$with" = "$without" ] || tell "$with"$'\n'"$without"
}

@test "placements: the CPUs asked for are the CPUs recorded" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1 --place compact,scatter,core:0,none \
    --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" 'len(records) == 4 and all(r["status"] == "ok" and len(r["cpus"]) == 1 for r in records)'
  local last
  last=$(taskset -cp $$ | sed 's/.*[ ,-]//')
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1 --place "$last" --out "$work/list.jsonl"
  expect_status 0
  holds "$work/list.jsonl" "records[0]['cpus'] == [$last]"
}

@test "an affinity mask is respected" {
  local last
  last=$(taskset -cp $$ | sed 's/.*[ ,-]//')
  attempt taskset -c "$last" "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads max --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" "records[0]['threads'] == 1 and records[0]['cpus'] == [$last]"
}

@test "more threads than CPUs are skipped with the reason" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1,4096 --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" 'sorted((r["threads"], r["status"]) for r in records) == [(1, "ok"), (4096, "skipped")]'
}

@test "a problem that cannot fit in memory is skipped with the figure" {
  LIMIT=30 attempt "$ATTNBENCH" run "${cheap[@]}" -B 64 -H 512 -S 1M -D 128 --kernel naive --threads 1 -o jsonl
  expect_status 77
  holds "$work/stdout" 'records[0]["status"] == "skipped" and "memory" in records[0]["reason"].lower()'
}

@test "--dry-run times nothing and writes nothing" {
  LIMIT=10 attempt "$ATTNBENCH" run --config full --dry-run --out "$work/out.jsonl"
  expect_status 0
  [ -n "$out" ] || tell "a plan expected"
  [ ! -e "$work/out.jsonl" ]
}

@test "--dry-run plans on another machine's topology" {
  attempt "$ATTNBENCH" run -S 64 --threads 1,max --topology "pack:2 core:8 pu:2" --dry-run
  expect_status 0
  expect_out 16
}

@test "every config of the repository makes a plan" {
  local config
  for config in "$root"/configs/*.yaml; do
    attempt "$ATTNBENCH" run --config "$config" --dry-run
    expect_status 0
  done
}

@test "flags override the keys of a config" {
  cat >"$work/own.yaml" <<'YAML'
name: own
defaults: {D: 16, threads: 1, min-time: 0.01s}
sweeps:
  - name: one
    S: 16-64x2
    H: [1, 2]
    kernel: [naive, tiled]
YAML
  attempt "$ATTNBENCH" run --config "$work/own.yaml" --samples 3 --out "$work/a.jsonl"
  expect_status 0
  holds "$work/a.jsonl" 'len(records) == 12 and {r["D"] for r in records} == {16}'
  attempt "$ATTNBENCH" run --config "$work/own.yaml" --samples 3 -D 8 --kernel naive --out "$work/b.jsonl"
  expect_status 0
  holds "$work/b.jsonl" 'len(records) == 6 and {(r["D"], r["kernel"]) for r in records} == {(8, "naive")}'
}

@test "a model's sizes" {
  attempt "$ATTNBENCH" run --model bert-base --dry-run
  expect_status 0
  attempt "$ATTNBENCH" run llama-3-8b --decode --dry-run
  expect_status 0
}

@test "--max-time ends the run in time with what it has" {
  local start=$SECONDS
  LIMIT=60 attempt "$ATTNBENCH" run -S 64-1024+64 -H 4 --kernel naive,tiled --threads 1 --max-time 3s --out "$work/out.jsonl"
  [ $((SECONDS - start)) -le 20 ] || tell "took $((SECONDS - start)) s"
  [ "$status" = 0 ] || [ "$status" = 1 ] || tell "0 or 1 expected"
  valid_journal "$work/out.jsonl"
  holds "$work/out.jsonl" 'len(records) == 32 or len(records) >= 1'
}

@test "--quick-check of quick ends soon and is marked rough" {
  [ "$MODE" = release ] || skip "a figure of the optimised build"
  local start=$SECONDS
  LIMIT=90 attempt "$ATTNBENCH" run --config quick --quick-check --out "$work/out.jsonl"
  expect_status 0
  valid_journal "$work/out.jsonl"
  [ $((SECONDS - start)) -le 30 ] || tell "took $((SECONDS - start)) s"
  holds "$work/out.jsonl" 'all(r["rough"] for r in records if r["status"] == "ok")'
  [[ ${out,,} == *rough* ]] || tell "the table should say so too"
}

@test "--launches makes the interval one across processes" {
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 32 -D 16 --kernel naive --threads 1 --launches 6 --out "$work/out.jsonl"
  expect_status 0
  holds "$work/out.jsonl" '(lambda r: r["ci_scope"] == "across_processes" and len(r["samples_ns"]) == 18
    and r["ci95_low_ns"] <= r["median_ns"] <= r["ci95_high_ns"])(records[0])'
}

@test "SIGINT ends after the point under way: 130, results kept, resumable" {
  attempt python3 "$root/tests/kill_test.py" "$ATTNBENCH" --victim interrupt --moments 2
  expect_status 0
}
