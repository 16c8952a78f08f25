#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The gate's error rates: what selftest-gate makes of recordings, and that prove-gate records.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# records FILE COUNT SD BIAS: a recording of identical code, normal log-ratios drawn from a seed, and 60 live verdicts.
records() {
  python3 - "$@" <<'END'
import json, random, sys
path, count, sd, bias = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
draw = random.Random(7)
with open(path, "w") as file:
    print(json.dumps({"schema": "attnbench.context/1", "cpu_model": "CPU", "machine_key": "k"}), file=file)
    for batch in range(0, count, 25):
        ratios = [draw.gauss(bias, sd) for _ in range(25)]
        print(json.dumps({"schema": "attnbench.duet/1", "label": "compute quiet aa", "status": "ok", "verdict": "same",
                          "log_ratios_cpu": ratios, "log_ratios_wall": ratios}), file=file)
    for effect, verdict in ((0, "same"), (0.02, "slower"), (0.05, "slower")):
        for _ in range(20):
            print(json.dumps({"schema": "attnbench.duet/1", "label": f"compute quiet live {effect:g}", "status": "ok",
                              "verdict": verdict, "log_ratios_cpu": [0] * 8, "log_ratios_wall": [0] * 8}), file=file)
END
}

@test "a calm recording meets the bars, and its rates are those of the rule" {
  records "$work/calm.jsonl" 1000 0.002 0
  attempt "$ATTNBENCH" selftest-gate --verdicts 2000 "$work/calm.jsonl"
  expect_status 0
  expect_out '1000 log-ratios of identical code' 'standard deviation 0.199 %' '| 2 % | 0 % | 0 % [0, 0.18' '| met |' \
    '| 2 % | 2 % | 99.85 % [99.56' '## Suites of 100 points, quiet' '| none | 0 % [0,' '| 2 % | 0 % [0,' \
    '| 2 % | 20 | 100 % [83.16, 100] | 0 % [0, 16.84] | 0 % [0, 16.84] | 8.0 |'
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
  records "$work/torn.jsonl" 1000 0.002 0
  printf '{"schema":"attnbench.duet/1","label":"compute qu' >>"$work/torn.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/torn.jsonl"
  expect_status 0
  printf '\n' >>"$work/torn.jsonl"
  attempt "$ATTNBENCH" selftest-gate --verdicts 500 "$work/torn.jsonl"
  expect_refusal 2 "$work/torn.jsonl:102: neither a context nor a record of a duet"
  printf '{"schema":"attnbench.duet/1","label":"fast"}\n' >"$work/label.jsonl"
  attempt "$ATTNBENCH" selftest-gate "$work/label.jsonl"
  expect_refusal 2 "label.jsonl:1: its label is 'fast'"
  attempt "$ATTNBENCH" selftest-gate
  expect_refusal 2 'which files?'
}
