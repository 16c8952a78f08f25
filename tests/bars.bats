#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The bars of speed and the search for cliffs: their configs are planned, and the figures told follow from the journals.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# Writes a journal: each argument is a Python dict that changes the model record.
journal() { # FILE CHANGES...
  local file=$1
  shift
  python3 - "$file" "$@" <<'PY'
import json, sys

base = {"schema": "attnbench.result/1", "status": "ok", "reason": None, "dtype": "f32", "B": 1, "H": 12, "H_kv": 12,
        "S_q": 512, "S_kv": 512, "D": 64, "causal": "none", "cache": "warm", "kernel": "avx512", "schedule": "auto",
        "threads": 1, "placement": "compact", "flops_useful": 8e8, "bytes_min": 6e6, "median_ns": 1e7, "gflops": 80.0,
        "roof_bound": "compute", "roof_gflops": 118.0, "roof_fraction": 0.9, "isa_roof_gflops": 118.0,
        "schedule_requested": "auto",
        "workspace_bytes": 1000, "noise": {"quality": "clean"}, "repro": "attnbench run"}
named = ("dtype", "B", "H", "H_kv", "S_q", "S_kv", "D", "causal", "cache", "kernel", "threads", "schedule_requested")
with open(sys.argv[1], "w") as file:
    print(json.dumps({"schema": "attnbench.context/1"}), file=file)
    for change in sys.argv[2:]:
        record = {**base, **eval(change)}
        record["point_id"] = " ".join(str(record[name]) for name in named)
        print(json.dumps(record), file=file)
PY
}

line() { # START: the words of the one line of stdout that starts so
  [ "$(grep -c "^$1" "$work/stdout")" = 1 ] || tell "one line should start with '$1'"
  grep "^$1" "$work/stdout" | tr -s ' '
}

decode='"B": 1, "H": 32, "S_q": 1, "S_kv": 4096, "D": 128, "cache": "cold"'

@test "both configs are planned, with one and with two threads" {
  attempt "$ATTNBENCH" run --config "$root/configs/bars.yaml" --dry-run
  expect_status 0
  expect_out '-B 1 -H 12 -S 512 -D 64' '-B 8 -H 12 -S 128 -D 64' '-B 1 -H 32 -S 2048 -D 128' \
    '-B 1 -H 8 -S 4096 -D 64' '-B 1 -H 32 --q-len 1 --kv-len 4096 -D 128 --cache cold' '--threads 1' '--kernel tiled'
  attempt "$ATTNBENCH" run --config "$root/configs/cliffs.yaml" --dry-run
  expect_status 0
  expect_out '-S 511 -D 64' '-S 577 -D 64' '-S 2049 -D 64' '-S 512 -D 63' '-S 1024 -D 257' '--kernel avx512_bf16' \
    '-S 513 -D 64 --causal bottom_right' '-S 512 -D 129 --dtype f16'
}

@test "every bar that is told has its point in the config" {
  LIMIT=300 attempt "$ATTNBENCH" run --config "$root/configs/bars.yaml" --dry-run
  expect_status 0
  python3 - "$work/stdout" "$work/plan.jsonl" <<'PY'
import json, shlex, sys

def value(words, flag, default):
    return words[words.index(flag) + 1] if flag in words else default

with open(sys.argv[1]) as plan, open(sys.argv[2], "w") as journal:
    for words in (shlex.split(line) for line in plan if "attnbench run" in line):
        both = value(words, "-S", None)
        record = {"B": int(value(words, "-B", 1)), "H": int(value(words, "-H", 1)),
                  "S_q": int(value(words, "--q-len", both)), "S_kv": int(value(words, "--kv-len", both)),
                  "D": int(value(words, "-D", 64)), "threads": int(value(words, "--threads", 2))}
        record.update(H_kv=int(value(words, "--kv-heads", record["H"])), cache=value(words, "--cache", "warm"),
                      causal=value(words, "--causal", "none"), dtype=value(words, "--dtype", "f32"),
                      kernel=value(words, "--kernel", None), schema="attnbench.result/1", point_id=words[0],
                      status="skipped", reason="planned", noise=None, repro="", roof_fraction=None, gflops=None)
        print(json.dumps(record), file=journal)
PY
  attempt "$root/scripts/bars" "$work/plan.jsonl"
  expect_status 0
  [[ $out != *"not in the journals"* ]] || tell "a bar without its point"
  expect_out 'skipped: planned' '0 pass, 0 fall short'
}

@test "a fraction is the median of three runs; two threads are held against one; noisy runs are counted" {
  local p2='"B": 8, "S_q": 128, "S_kv": 128'
  journal 1.jsonl '{"roof_fraction": 0.86}' '{"threads": 2, "roof_fraction": 0.80}' \
    "{$p2, 'roof_fraction': 0.70}" "{$p2, 'threads': 2, 'roof_fraction': 0.69}"
  journal 2.jsonl '{"roof_fraction": 0.20, "noise": {"quality": "noisy"}}' '{"threads": 2, "roof_fraction": 0.81}' \
    "{$p2, 'roof_fraction': 0.79}" "{$p2, 'threads': 2, 'roof_fraction': 0.71}"
  journal 3.jsonl '{"roof_fraction": 0.88}' '{"threads": 2, "roof_fraction": None, "noise": {"quality": "noisy"}}' \
    "{$p2, 'roof_fraction': 0.72}" "{$p2, 'threads': 2, 'roof_fraction': 0.70}"
  attempt "$root/scripts/bars" 1.jsonl 2.jsonl 3.jsonl
  expect_status 0
  [[ $(line 'p1 avx512 f32  *1 ') = *' 1 0.860 0.860 >= 0.85 0.90 1/3 pass' ]] || tell 'p1, one thread'
  [[ $(line 'p1 avx512 f32  *2 ') = *' 2 0.805 0.936x >= 0.95x 1/3 fall-short' ]] || tell 'p1, two threads'
  [[ $(line 'p2 avx512 f32  *1 ') = *' 1 0.720 0.720 >= 0.78 0.86 0/3 fall-short' ]] || tell 'p2, one thread'
  [[ $(line 'p2 avx512 f32  *2 ') = *' 2 0.700 0.972x >= 0.95x 0/3 pass' ]] || tell 'p2, two threads'
  expect_out '2 pass, 2 fall short' 'medians of 3 runs'
}

@test "tiled by its own peak, decode in absolute terms, grouped heads by both roofs, splitkv by time" {
  local tiled='"kernel": "tiled", "H": 2, "S_q": 2048, "S_kv": 2048, "isa_roof_gflops": 30.0'
  local gqa="$decode, \"H_kv\": 8, \"roof_bound\": \"dram\", \"roof_fraction\": 0.75"
  local few='"H": 8, "H_kv": 1, "S_q": 1, "S_kv": 4096, "D": 128'
  local long='"H": 8, "S_q": 4096, "S_kv": 4096' half='"H": 8, "S_q": 2048, "S_kv": 2048'
  local mha="$decode, \"H_kv\": 32, \"roof_bound\": \"dram\""
  journal 1.jsonl "{$tiled, 'gflops': 21.0}" "{$mha, 'roof_gflops': 15, 'roof_fraction': 0.93}" \
    "{$mha, 'threads': 2, 'roof_fraction': 0.89}" \
    "{$gqa, 'roof_gflops': 40}" "{$gqa, 'roof_gflops': 100, 'dtype': 'f16'}" \
    "{$gqa, 'roof_gflops': 118, 'dtype': 'bf16', 'roof_bound': 'compute', 'flops_useful': 1.6e10}" \
    "{$few, 'median_ns': 1.9e5}" "{$few, 'median_ns': 1e5, 'threads': 2, 'schedule': 'splitkv'}" \
    "{$half}" "{$long, 'workspace_bytes': 4000}"
  attempt "$root/scripts/bars" 1.jsonl
  expect_status 0
  [[ $(line 'S 2048, D 64 tiled f32  *1 ') = *' 1 0.700 0.700 >= 0.60 0/1 pass' ]] || tell 'tiled'
  [[ $(line 'd1 avx512 f32  *1 ') = *' 0.930 >= 0.92 0.97 0/1 pass' ]] || tell 'decode, one thread'
  [[ $(line 'd1 avx512 f32  *2 ') = *' 0.890 >= 0.90 0/1 fall-short' ]] || tell 'decode, two threads'
  [[ $(line 'd1, 8 key heads avx512 f32 (dram binds, by 3.0)  *1 ') = *' >= 0.88 0/1 fall-short' ]] ||
    tell 'roofs apart'
  [[ $(line 'd1, 8 key heads avx512 f16 (dram binds, by 1.2)  *1 ') = *' 0.750 >= 0.70 0/1 pass' ]] ||
    tell 'roofs close'
  # d1 at 15 GFLOP/s and 8e8 FLOPs for its bytes; at 1.6e10 for as many, memory would allow 300 GFLOP/s.
  expect_out 'd1, 8 key heads avx512 bf16 (compute binds, by 2.5)'
  [[ $(line '1 key head avx512 f32, times faster (splitkv)') = *' 1.900x >= 1.80x 0/1 pass' ]] || tell 'splitkv'
  [[ $(line 'workspace, p4 to p4 at S 2048 avx512 f32  *1 ') = *' 4.000x <= 1.10x 0/1 fall-short' ]] ||
    tell 'workspace'
}

@test "a wrong point ends with exit 1 and its command; no record and no file with exit 2" {
  journal 1.jsonl '{}' '{"threads": 2, "status": "wrong", "reason": "beyond the bound", "roof_fraction": None,
    "gflops": None, "median_ns": None, "noise": None}'
  attempt "$root/scripts/bars" 1.jsonl
  expect_status 1
  expect_out 'wrong: beyond the bound: attnbench run'
  [[ $(line 'p1 avx512 f32  *2 ') = *'wrong: beyond the bound' ]] || tell 'the verdict'
  attempt "$root/scripts/cliffs" 1.jsonl
  expect_status 1
  journal 2.jsonl
  attempt "$root/scripts/bars" 2.jsonl
  expect_refusal 2 'holds no record'
  attempt "$root/scripts/cliffs" absent.jsonl
  expect_refusal 2 'absent.jsonl'
}

@test "cliffs: drops of over 15 % between neighbours in S or D, and no others" {
  journal 1.jsonl '{"S_q": 511}' '{"S_q": 512}' '{"S_q": 513, "roof_fraction": 0.7}' \
    '{"S_q": 575, "roof_fraction": 0.1}' '{"D": 65, "S_q": 512, "roof_fraction": 0.77}' \
    '{"kernel": "avx2", "S_q": 512, "roof_fraction": 0.2}' '{"kernel": "avx2", "S_q": 513, "roof_fraction": None}'
  attempt "$root/scripts/cliffs" 1.jsonl
  expect_status 0
  expect_out 'cliff: avx512 f32: S 513 D 64 reaches 0.700, S 512 D 64 0.900: 22% less' \
    'drops of over 15%: 1, among 3 pairs of neighbours; pairs without a figure: 1'
  [ "$(grep -c ^cliff "$work/stdout")" = 1 ] || tell 'one cliff'
}

@test "schedules: auto against the fastest fixed schedule of each problem" {
  local bh="'schedule': 'bh', 'schedule_requested': 'bh'" bhq="'schedule': 'bhq', 'schedule_requested': 'bhq'"
  # B 1: auto picks the faster one; B 2: the slower; B 3: no fixed schedule could run, B 4: no auto
  journal 1.jsonl "{'schedule': 'bhq', 'median_ns': 1.01e6}" "{$bhq, 'median_ns': 1e6}" "{$bh, 'median_ns': 2e6}" \
    "{'B': 2, 'schedule': 'bhq', 'median_ns': 1e6}" "{'B': 2, $bhq, 'median_ns': 1e6}" "{'B': 2, $bh, 'median_ns': 8e5}" \
    "{'B': 3}" "{'B': 3, $bh, 'status': 'skipped', 'median_ns': None, 'noise': None}" "{'B': 4, $bh}"
  attempt "$root/scripts/schedules" 1.jsonl
  expect_status 0
  expect_out 'within  +1.0%  B 1 H 12/12 S 512/512 D 64, avx512, 1 threads: picks bhq, fastest bhq; noisy 0/1, 0/1' \
    'behind +25.0%  B 2 H 12/12 S 512/512 D 64, avx512, 1 threads: picks bhq, fastest bh; noisy 0/1, 0/1' \
    'auto behind by over 5%: 1, among 2 problems'
  attempt "$root/scripts/schedules" absent.jsonl
  expect_refusal 2 'absent.jsonl'
  attempt "$ATTNBENCH" run --config "$root/configs/models.yaml" --schedule auto,serial,bh,bhq,splitkv --threads 2 --dry-run
  expect_status 0
}

@test "without files the config runs three times, its journals kept; a run that breaks off ends it" {
  cp -r "$root/scripts" "$root/configs" .
  journal run1.jsonl '{"roof_fraction": 0.5}'
  journal run2.jsonl '{"roof_fraction": 0.9}'
  journal run3.jsonl '{"roof_fraction": 0.86}'
  cat >program <<'SH'
#!/bin/bash
[ "$1 $2" = "run --config" ] && [ -f "$3" ] && [ "$4" = --out ] || exit 2
cp "run${5: -7:1}.jsonl" "$5"
SH
  chmod +x program
  attempt scripts/bars --program ./program
  expect_status 0
  [[ $(line 'p1 avx512 f32  *1 ') = *' 1 0.860 0.860 >= 0.85 0.90 0/3 pass' ]] || tell 'the median of the runs'
  [ "$(find results/local -name 'bars-*.jsonl' | wc -l)" = 3 ] || tell 'three journals'
  attempt scripts/cliffs --program ./program
  expect_status 0
  printf '#!/bin/bash\nexit 77\n' >program
  attempt scripts/bars --program ./program
  expect_status 77
  [ -z "$out" ] || tell 'nothing to tell'
}
