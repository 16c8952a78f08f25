#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# attnbench history import of duets: every record counts, or the file is refused; repeats within a run are one point.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/history.bash
. "$BATS_TEST_DIRNAME/history.bash"

@test "lines without a schema, and records above all contexts, are refused by file and line" {
  data duet-lines 1 >lines.jsonl
  { echo '{"a": 1}' && tail -n +2 lines.jsonl; } >junk.jsonl
  refused history import --db h.db junk.jsonl -- junk.jsonl:1: 'without "schema"'
  { echo '{"schema": "attnbench.duet/1", "a": "base"}' && cat lines.jsonl; } >early.jsonl
  refused history import --db h.db early.jsonl -- early.jsonl
  tail -n +2 lines.jsonl >headless.jsonl
  refused history import --db h.db headless.jsonl -- headless.jsonl:1: "a record before its context"
  sed '3s/"schema": "attnbench.duet.1", //' lines.jsonl >bare.jsonl
  refused history import --db h.db bare.jsonl -- bare.jsonl:3: 'without "schema"'
  expect_value "SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM ratio) + (SELECT count(*) FROM series)" 0
  history import lines.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM ratio" 2
}

# Three verdicts on each of four kernels: near each other, far apart, one without a standard error, none with one.
repeats() {
  data duet-lines 1 points=4 >one.jsonl
  python3 - <<'PY'
import json

told = [[(0.010, 0.002), (0.012, 0.002), (0.011, 0.001)], [(0.0, 0.001), (0.03, 0.001), (0.06, 0.001)],
        [(0.0, 0.001), (0.0, 0.004), (0.017, None)], [(0.01, None), (0.02, 0), (0.06, None)]]
context, *records = [json.loads(line) for line in open("one.jsonl")]
with open("three.jsonl", "w") as file:
    print(json.dumps(context), file=file)
    for record, figures in zip(records, told):
        for ratio, error in figures:
            record.update(log_ratio=ratio, se=error, verdict="slower" if ratio > 0.05 else "equal")
            print(json.dumps(record), file=file)
PY
}

@test "repeats within a run are one point of their series: their mean, weighted by their standard errors" {
  repeats
  history import three.jsonl
  expect_status 0
  [ "$err" = "three.jsonl: 4 points added" ] || tell "four points expected"
  pooled() { # KERNEL COLUMN
    value_of "SELECT $2 FROM ratio JOIN series ON series.id = ratio.series WHERE kernel = '$1'"
  }
  # Weights 1, 1, 4: 0.001 / sqrt(6 / 4), more than their spread tells.
  [ "$(pooled avx2 'round(log_ratio, 9)')" = 0.011 ]
  [ "$(pooled avx2 'round(standard_error, 9)')" = 0.000816497 ]
  [ "$(pooled avx2 'processes || verdict')" = 36equal ]
  # The spread: sqrt(0.0018 / 3 / 2).
  [ "$(pooled tiled 'round(log_ratio, 9)')" = 0.03 ]
  [ "$(pooled tiled 'round(standard_error, 9)')" = 0.017320508 ]
  [ "$(pooled tiled verdict)" = mixed ]
  # Weights 16, 1, 1.
  [ "$(pooled avx512 'round(log_ratio, 9)')" = "$(python3 -c 'print(round(0.017 / 18, 9))')" ]
  [ "$(pooled naive 'round(log_ratio, 9)')" = 0.03 ]
  [ "$(pooled naive 'typeof(standard_error)')" = null ]
  history import three.jsonl
  [ "$err" = "three.jsonl: 0 points added; 4 in h.db already" ] || tell "nothing should be added, and nothing differ"
}

@test "repeats are no further runs: they make no change" {
  import_runs duet-lines 1 9 points=1
  data duet-lines 10 points=1 scale=1.5 >last.jsonl
  sed -n '2{p;p;p}' last.jsonl >more.jsonl
  cat more.jsonl >>last.jsonl
  history import -q last.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM point" 10
  history changes -o csv
  expect_status 0
  [ "$(wc -l <stdout)" = 1 ] || tell "no change expected"
}

@test "another kernel of the same name within a run is not mixed in: the first figure is kept, and that is told" {
  data duet-lines 1 points=1 >one.jsonl
  sed -n '2s/"b": "build/"b": "other/; 2s/"log_ratio": [-0-9.e]*/"log_ratio": 0.5/p' one.jsonl >more.jsonl
  [ -s more.jsonl ]
  cat more.jsonl >>one.jsonl
  history import one.jsonl
  expect_status 0
  [[ $err == *"warning: 1 of the points"*"which is kept"* ]] || tell "a warning expected"
  expect_value "SELECT count(*) FROM ratio WHERE log_ratio < 0.1" 1
}

@test "what duet --repeat writes is one point, of all its processes" {
  ATTNBENCH_DUET_SECONDS=10ms attempt "$ATTNBENCH" duet naive tiled -S 16 -D 16 --threads 1 --processes 3 --repeat 3 \
    --out d.jsonl
  [ "$status" = 0 ] || [ "$status" = 4 ] || tell "verdicts expected"
  [ "$(grep -c '"schema":"attnbench.duet/1"' d.jsonl)" = 3 ]
  sed -i 's/"page_mode":"[^"]*"/"page_mode":"2m"/' d.jsonl # which pages there are is chance
  history import d.jsonl
  expect_status 0
  [ "$err" = "d.jsonl: 1 point added" ] || tell "one point expected"
  expect_value "SELECT processes FROM ratio" 9
}

@test "a provisional line of a gate never counts: its point was chosen for its ratio" {
  data duet-lines 1 points=4 >plain.jsonl
  python3 - <<'PY'
import json

context, *records = [json.loads(line) for line in open("plain.jsonl")]
with open("gate.jsonl", "w") as file:
    def put(line, **changes):
        print(json.dumps({**line, **changes}), file=file)

    put(context)
    for i, record in enumerate(records):
        record.update(point_id=f"{i:016x}", log_ratio=0.5)
        put(record, provisional=True, page_mode="4k" if i == 1 else "2m")
    put(records[0], log_ratio=0.25)
    put(records[1], log_ratio=0.25)
    put(records[2], log_ratio=0.25, status="wrong")
    put(context, run_id="run-2")
    put(records[1], provisional=True)
PY
  history import gate.jsonl
  expect_status 0
  [ "$err" = "gate.jsonl: 2 points added" ] || tell "two points expected"
  expect_value "SELECT group_concat(told, ', ') FROM (SELECT run_id || ' ' || kernel || ' ' || log_ratio || ' ' || processes
    AS told FROM ratio JOIN series ON series.id = ratio.series JOIN run ON run.id = ratio.run ORDER BY told)" \
    "run-1 avx2 0.25 12, run-1 tiled 0.25 12"
}
