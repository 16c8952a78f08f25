#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The gate's error rates: what selftest-gate makes of recordings, and that prove-gate records.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# records FILE COUNT SD BIAS: a recording of identical code, normal log-ratios drawn from a seed, of each class and load,
# 60 live verdicts a class, and the planted slowdowns' sizes.
records() {
  python3 - "$@" <<'END'
import json, random, sys
path, count, sd, bias = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
draw = random.Random(7)
with open(path, "w") as file:
    print(json.dumps({"schema": "attnbench.context/1", "cpu_model": "CPU", "machine_key": "k"}), file=file)
    for series in ("compute quiet", "compute busy", "memory quiet", "memory busy"):
        for batch in range(0, count, 25):
            ratios = [draw.gauss(bias, sd) for _ in range(25)]
            print(json.dumps({"schema": "attnbench.duet/1", "label": f"{series} aa", "status": "ok", "verdict": "same",
                              "log_ratios_cpu": ratios, "log_ratios_wall": ratios}), file=file)
        for effect, verdict in ((0, "same"), (0.02, "slower"), (0.05, "slower")):
            for n in range(10):
                print(json.dumps({"schema": "attnbench.duet/1", "label": f"{series} live {effect:g}", "status": "ok",
                                  "verdict": verdict, "spent_s": 9 + 3 * (n == 5), "log_ratios_cpu": [0] * 8,
                                  "log_ratios_wall": [0] * 8}), file=file)
        for effect in (0.01, 0.02, 0.05):
            ratio, low, high = (round(1 + share * effect, 4) for share in (1.05, 0.9, 1.2))
            print(json.dumps({"schema": "attnbench.duet/1", "label": f"{series} size {effect:g}", "status": "ok",
                              "verdict": "slower", "ratio": ratio, "ratio_low": low, "ratio_high": high,
                              "log_ratios_cpu": [0] * 8, "log_ratios_wall": [0] * 8}), file=file)
END
}

@test "a calm recording meets the bars, and its rates are those of the rule" {
  records "$work/calm.jsonl" 1000 0.002 0
  attempt "$ATTNBENCH" selftest-gate --verdicts 2000 "$work/calm.jsonl"
  expect_status 0
  expect_out '1000 log-ratios of identical code' 'standard deviation 0.199 %' '| 2 % | 0 % | 0 % [0, 0.18' '| met |' \
    '| 2 % | 2 % | 99.85 % [99.56' '## Suites of 100 points, quiet' '| none | 0 % [0,' '| 2 % | 0 % [0,' \
    '| 2 % | 10 | 100 % [69.15, 100] | 0 % [0, 30.85] | 0 % [0, 30.85] | 8.0 | 9.0, 12.0 s | agrees |' \
    'The planted 2 % measures +2.10 % [+1.80, +2.40].'
}

@test "a wild recording, and one with a bias, miss them" {
  records "$work/wild.jsonl" 1000 0.05 0
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/wild.jsonl"
  expect_status 1
  expect_out '**missed**'
  records "$work/biased.jsonl" 1000 0.001 0.02
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/biased.jsonl"
  expect_status 1
  expect_out '| 2 % | 0 % | 100 % [99.'
}

@test "live verdicts that the bars do not allow, or too late, a slowdown of another size, and a class that is missing" {
  records "$work/all.jsonl" 1000 0.001 0
  sed '/compute busy live 0.02/s/"slower"/"inconclusive"/' "$work/all.jsonl" >"$work/blind.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/blind.jsonl"
  expect_status 1
  expect_out '| 2 % | 10 | 0 % [0, 30.85] | 0 % [0, 30.85] | 100 % [69.15, 100] | 8.0 | 9.0, 12.0 s | **does not agree** |'
  sed 's/"ratio_high": 1.024/"ratio_high": 1.012/; s/"ratio": 1.021, "ratio_low": 1.018/"ratio": 1.01, "ratio_low": 1.008/' \
    "$work/all.jsonl" >"$work/small.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/small.jsonl"
  expect_status 1
  expect_out 'The planted 2 % measures +1.00 % [+0.80, +1.20]: **another size**.'
  sed '/compute busy live 0.02/s/"spent_s": 9,/"spent_s": 16,/; /memory quiet live 0.05/s/"spent_s": 12/"spent_s": 36/' \
    "$work/all.jsonl" >"$work/late.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/late.jsonl"
  expect_status 1
  expect_out '| 8.0 | 16.0, 16.0 s | agrees; **takes too long** |' '| 8.0 | 9.0, 36.0 s | agrees; **takes too long** |'
  sed 's/"spent_s": [0-9]*, //' "$work/all.jsonl" >"$work/untimed.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/untimed.jsonl"
  expect_out '| 8.0 | - | agrees |'
  grep -v 'memory busy' "$work/all.jsonl" >"$work/three.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/three.jsonl"
  expect_status 4
}

@test "a proof without live slowdowns, without their sizes, or of two machines is none, and says what is missing" {
  records "$work/all.jsonl" 1000 0.001 0
  wanting() { # TEXT FILE
    attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$2"
    expect_status 4
    expect_out "No proof, for want of: $1."
  }
  sed '/live 0.0[25]/{s/live 0.0[25]/live 0/; s/"slower"/"same"/}' "$work/all.jsonl" >"$work/same.jsonl"
  wanting '20 live verdicts of compute on 2 %' "$work/same.jsonl"
  sed '/memory .* live 0.05/s/live 0.05/live 0.02/' "$work/all.jsonl" >"$work/two.jsonl"
  wanting '20 live verdicts of memory on 5 %' "$work/two.jsonl"
  grep -v 'size 0.05' "$work/all.jsonl" >"$work/unsized.jsonl"
  wanting "the measured size of compute's planted 5 %" "$work/unsized.jsonl"
  grep -v 'memory .* size' "$work/all.jsonl" >"$work/memory.jsonl"
  wanting "the measured size of memory's planted 1 %" "$work/memory.jsonl"
  sed '1{p; s/"k"/"other"/}' "$work/all.jsonl" >"$work/mixed.jsonl"
  wanting 'records of one machine alone' "$work/mixed.jsonl"
  expect_out 'these figures mix machines'
}

@test "too little recorded is no proof, and says so" {
  records "$work/little.jsonl" 50 0.002 0
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/little.jsonl"
  expect_status 4
  printf '{"schema":"attnbench.duet/1","label":"x y aa","status":"ok","log_ratios_cpu":[],"log_ratios_wall":[]}\n' \
    >"$work/none.jsonl"
  attempt "$ATTNBENCH" selftest-gate "$work/none.jsonl"
  expect_status 4
  expect_out 'Too few to replay' 'No live verdicts' 'no context tells the machine'
}

@test "a torn last line is left out; what is no such record is named by file and line" {
  records "$work/torn.jsonl" 1000 0.001 0
  printf '{"schema":"attnbench.duet/1","label":"compute qu' >>"$work/torn.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 2000 "$work/torn.jsonl"
  expect_status 0
  printf '\n' >>"$work/torn.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 2000 "$work/torn.jsonl"
  expect_refusal 2 "$work/torn.jsonl:294: neither a context nor a record of a duet"
  printf '{"schema":"attnbench.duet/1","label":"fast"}\n' >"$work/label.jsonl"
  attempt "$ATTNBENCH" selftest-gate "$work/label.jsonl"
  expect_refusal 2 "label.jsonl:1: its label is 'fast'"
  attempt "$ATTNBENCH" selftest-gate
  expect_refusal 2 'which files?'
}

@test "prove-gate records, goes on with what it has, and leaves no busy loop behind" {
  [ "$MODE" = release ] || skip "a sanitizer's objects do not go into a library of their own"
  local build
  build=$(dirname "$ATTNBENCH")
  export ATTNBENCH_DUET_SECONDS=10ms
  mkdir kernels
  cp -r "$root/scripts" .
  cp "$root/kernels/attn.h" kernels/
  record() { attempt scripts/prove-gate --build "$build" --out rec.jsonl --processes 26 --live 1 --verdicts 500 --only "$@"; }
  record compute/busy
  expect_status 4
  expect_out '26 log-ratios of identical code' '| 2 % | 1 | '
  [ "$(grep -c '"label":"compute busy aa"' rec.jsonl)" = 2 ] # 25 and 1
  [ "$(grep -c 'attnbench.context/1' rec.jsonl)" = 1 ]
  record compute/quiet compute/busy
  expect_out 'The planted 5 % measures'
  [ "$(grep -c '"label":"compute busy' rec.jsonl)" = 5 ]
  [ "$(grep -c 'attnbench.context/1' rec.jsonl)" = 2 ]
  sed -i 's/"build_dirty":false/"build_dirty":true/' rec.jsonl
  record compute/quiet --publish
  expect_status 1
  [[ $err == *"no commit holds"* ]] || tell "a build with changes is not to be published"
  sed -i 's/"build_dirty":true/"build_dirty":false/' rec.jsonl
  record compute/quiet --publish
  expect_status 4
  cmp rec.jsonl results/*/prove-gate/recording.jsonl
  cmp stdout results/*/prove-gate/rates.md
  if grep -qF "$work" rec.jsonl; then tell "a path of this machine"; fi
  sed '0,/"machine_key":"[^"]*"/s//"machine_key":"elsewhere"/' rec.jsonl >two.jsonl
  attempt scripts/prove-gate --build "$build" --out two.jsonl --only compute/quiet
  expect_refusal 2 "two.jsonl: holds records of machine elsewhere" "begin another file"
  sed 's/"machine_key":"[^"]*"/"machine_key":"elsewhere"/' rec.jsonl >moved.jsonl
  cp moved.jsonl before.jsonl
  attempt scripts/prove-gate --build "$build" --out moved.jsonl --processes 27 --live 1 --only compute/quiet
  expect_status 2
  [[ $err == *"moved.jsonl: holds records of machine elsewhere"* ]] || tell "another machine's file is not added to"
  cmp moved.jsonl before.jsonl
  sed -i 's/"H": *1,/"H": 2,/' rec.jsonl
  record compute/busy
  expect_refusal 2 "was recorded with H 2, not 1"
  scripts/prove-gate --build "$build" --out more.jsonl --only compute/busy 2>log &
  local program=$! code=0
  until pgrep -P "$program" -f 'while :' >pids; do sleep 0.05; done
  kill "$program"
  wait "$program" || code=$?
  [ "$code" = 143 ]
  while read -r pid; do ! kill -0 "$pid" 2>/dev/null || { echo "$pid runs on"; return 1; }; done <pids
}

@test "--gate-tries counts what gate says beside pinned busy loops" {
  [ "$MODE" = release ] || skip "a sanitizer's objects do not go into a library of their own"
  export ATTNBENCH_DUET_SECONDS=10ms
  attempt "$root/scripts/prove-gate" --build "$(dirname "$ATTNBENCH")" --gate-tries 1
  [[ $status = [01] ]] || tell "exit 0, or 1 where a verdict on 10 ms is wrong"
  expect_out '| identical code | 1 | 1 x exit ' '| a planted slowdown of 5 % | 1 | 1 x exit '
  [[ $err == *"identical code, try 1: exit code"* ]] || tell "each try is told"
  attempt "$root/scripts/prove-gate" --build "$(dirname "$ATTNBENCH")" --gate-tries 0
  expect_refusal 2 "at least 1"
}
