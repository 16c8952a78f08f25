#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# attnbench history list, show, changes, sql: changes found where they were planted and only there; queries that only
# read.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/history.bash
. "$BATS_TEST_DIRNAME/history.bash"

@test "list: filters, and figures a program can read" {
  import_runs journal 1 5 points=4
  import_runs journal 6 9 points=2 machine=machine-b prefix=other
  history list
  expect_status 0
  expect_out "machine machine-a" "machine machine-b" "avx512 auto x2 compact"
  [ "$(grep -c '[▁▂▃▄▅▆▇█]\{4\}' stdout)" = 6 ] || tell "six sparklines expected"
  LC_ALL=C history list
  [ -z "$(LC_ALL=C tr -d '\0-\177' <stdout)" ] || tell "nothing beyond ASCII expected"
  history list --kernel 'avx*' -o jsonl
  [ "$(python3 -c 'import json; print(sorted(json.loads(line)["kernel"] for line in open("stdout")))')" = \
    "['avx2', 'avx2', 'avx512']" ] || tell "three series of avx* expected"
  history list --machine machine-b -o json
  python3 -c 'import json
rows = json.load(open("stdout"))
assert [(r["kernel"], r["points"], r["last_utc"]) for r in rows] == [
    ("avx2", 4, "2026-01-01T00:09:00Z"), ("tiled", 4, "2026-01-01T00:09:00Z")], rows'
  history list --limit 2 -o csv
  [ "$(grep -c machine-b stdout)" = 2 ] && [ "$(wc -l <stdout)" = 3 ] || tell "the two newest expected"
  refused history list --db h.db --kernel 'sse*' -- --kernel 'sse*'
  refused history list --db h.db --machine elsewhere -- --machine elsewhere
}

@test "show: points in the order of time, whatever the order of import" {
  data journal 1 points=1 noise=0 >1.jsonl
  data journal 2 points=1 noise=0 scale=2 >2.jsonl
  data journal 3 points=1 noise=0 scale=3 >3.jsonl
  history import -q 3.jsonl 1.jsonl 2.jsonl
  local key
  key=$(value_of "SELECT key FROM series")
  history show "${key:0:6}"
  expect_status 0
  # Of the logarithms: log 2 / log 3 is 0.63, the sixth of eight steps.
  expect_out "▁▆█" "1.000 ms" "2.000 ms" "3.000 ms" "±1.0%" 000000000002 "series $key"
  history show "$key" -o csv
  [ "$(cut -d, -f 2 stdout | xargs)" = "run_id run-1 run-2 run-3" ] || tell "runs in order expected"
  history show "$key" -o json
  python3 -c 'import json; assert [p["median_ns"] for p in json.load(open("stdout"))] == [1e6, 2e6, 3e6]'
  refused history show --db h.db zzz -- zzz "no such series"
  data journal 4 points=400 >4.jsonl
  history import -q 4.jsonl
  key=$(value_of "SELECT substr(key, 1, 1) FROM series GROUP BY substr(key, 1, 1) HAVING count(*) > 1")
  refused history show --db h.db "$key" -- "$key" "more than one series"
}

@test "sql: reads in four forms" {
  import_runs journal 1 1
  history sql "SELECT kernel, threads, 1.5 AS x, NULL AS y, 'a,\"b' AS z FROM series ORDER BY kernel"
  expect_status 0
  [ "$(sed -n 1p stdout)" = "kernel  threads  x    y  z" ] || tell "titles expected"
  history sql "SELECT kernel, threads, 1.5 AS x, NULL AS y, 'a,\"b' AS z FROM series ORDER BY kernel; -- done" -o csv
  [ "$(sed -n 2p stdout)" = 'avx2,2,1.5,,"a,""b"' ] || tell "a row of CSV expected"
  history sql "SELECT 1 AS a, 2 AS a, x'00ff' AS b" -o jsonl
  [ "$out" = '{"a":1,"a_2":2,"b":"00ff"}' ] || tell "an object expected"
  history sql "SELECT 1 AS a UNION SELECT 2" -o json
  python3 -c 'import json; assert json.load(open("stdout")) == [{"a": 1}, {"a": 2}]'
  history sql "SELECT value FROM json_each('[3]')" -o csv
  expect_status 0
  history sql "PRAGMA table_info(ratio)" -o csv
  expect_out log_ratio
}

@test "sql: whatever is more than reading is refused, and changes nothing" {
  import_runs journal 1 1
  sha256sum h.db >before
  local query
  for query in "DELETE FROM result" "DROP TABLE run" "CREATE TABLE x (a)" "CREATE TEMP TABLE x (a)" \
    "UPDATE run SET host = ''" "INSERT INTO run (run_id) VALUES (1)" "ATTACH 'x.db' AS x" "PRAGMA user_version = 7" \
    "PRAGMA journal_mode = DELETE" "PRAGMA writable_schema = 1" "VACUUM" "VACUUM INTO 'x.db'" "BEGIN" \
    "WITH x AS (SELECT 1) DELETE FROM result" "SELECT load_extension('x')" "UPDATE sqlite_master SET sql = ''"; do
    refused history sql --db h.db "$query" -- query
  done
  refused history sql --db h.db "SELECT 1; SELECT 2" -- "more than one statement" "SELECT 2"
  refused history sql --db h.db "SELECT 1; DROP TABLE run" -- "more than one statement"
  refused history sql --db h.db "SELEC 1" -- SELEC
  refused history sql --db h.db $'SELECT "\n\n' -- query
  refused history sql --db h.db " -- nothing" -- empty
  sha256sum -c before
  [ ! -e x.db ]
}

changes_json() { # EXPRESSION: holds of `alerts`, what changes -o json gives
  history changes -o json
  expect_status 0
  python3 - "$1" <<'PY'
import collections, json, math, sys

alerts = json.load(open("stdout"))
if not eval(f"({sys.argv[1]})"):
    sys.exit(f"{sys.argv[1]} does not hold of {json.dumps(alerts, indent=1)}")
PY
}

@test "no change in flat series, within or beyond their standard errors" {
  import_runs journal 1 30 points=12
  import_runs duet 1 30 points=12 prefix=duet
  # Journals whose intervals are far too narrow for the noise from run to run.
  import_runs journal 101 130 points=12 machine=machine-b noise=0.03
  changes_json 'alerts == []'
  history changes
  expect_status 0
  [ -z "$out" ] || tell "no change expected"
  [ "$err" = "no change in 36 series" ] || tell "no change expected"
  history changes --fail-on any
  expect_status 0
  history changes --fail-on any --times
  expect_status 0
}

@test "times of separate launches are marked as such, and decide only with --times" {
  import_runs journal 1 8 points=1
  import_runs journal 9 16 points=1 scale=1.3
  history changes
  expect_status 0
  expect_out "1 series: 1 slower" "(sequential, p " "sequential: times of launches one after the other"
  changes_json 'all(c["sequential"] is True for a in alerts for c in a["changes"])'
  history changes --fail-on slower
  expect_status 4
  [[ $err == *"--times"* ]] || tell "should tell of --times"
  history changes --fail-on slower --times
  expect_status 3
  import_runs duet 1 16 points=1 prefix=duet
  history changes --fail-on slower
  expect_status 0
  [[ $err == *"changes of times alone"*"--times"* ]] || tell "should tell of --times"
  import_runs duet 17 24 points=1 prefix=duet scale=1.3
  history changes --fail-on slower
  expect_status 3
  changes_json '[(c["anchor"], c["sequential"]) for a in alerts for c in a["changes"]] == [("", True), ("base", False)]'
  refused history changes --db h.db --times -- --times --fail-on
  refused history list --times -- --times list
}

@test "each change of an alert has a commit before it, a run and a time of its own" {
  import_runs journal 1 7 points=2
  import_runs journal 8 8 points=1
  import_runs journal 9 16 points=2 scale=1.3
  # The third series meets the same commit an hour later.
  import_runs duet 1 8 points=1 prefix=duet
  import_runs duet 69 69 points=1 prefix=duet commit=9 scale=1.3
  import_runs duet 70 76 points=1 prefix=duet scale=1.3
  changes_json 'len(alerts) == 1 and alerts[0]["commit"][:12] == "000000000009" and alerts[0]["slower"] == 3'
  changes_json 'alerts[0]["run_id"] is None and alerts[0]["previous_commit"] is None and
    alerts[0]["time_utc"] == "2026-01-01T00:09:00Z"'
  changes_json 'sorted((c["run_id"], c["time_utc"], c["kernel"], c["previous_commit"][:12]) for c in alerts[0]["changes"]) == [
    ("duet-69", "2026-01-01T01:09:00Z", "avx2", "000000000008"), ("run-9", "2026-01-01T00:09:00Z", "avx2", "000000000008"),
    ("run-9", "2026-01-01T00:09:00Z", "tiled", "000000000007")]'
  history changes
  expect_out "000000000009  2026-01-01T00:09:00Z  3 series: 3 slower, 0 faster" ", after 000000000007)" \
    ", after 000000000008)" ", after 000000000008, at 2026-01-01T01:09:00Z)"
  history changes -o csv
  [ "$(wc -l <stdout)" = 4 ] || tell "a line a change expected"
}

@test "steps are found at their commits, in both directions, and merged by commit" {
  local kind
  for kind in journal duet; do
    import_runs "$kind" 1 8 points=3 "prefix=$kind"
    import_runs "$kind" 9 16 points=3 scale.0=1.1 scale.1=1.2 "prefix=$kind"
    import_runs "$kind" 17 24 points=3 scale.0=1.1 scale.1=1.05 "prefix=$kind"
  done
  changes_json '[(a["commit"][:12], a["previous_commit"][:12], a["slower"], a["faster"]) for a in alerts] == [
    ("000000000009", "000000000008", 4, 0), ("000000000011", "000000000010", 0, 2)]'
  changes_json 'all(abs(c["log_change"] - math.log({"avx2": 1.1, "tiled": 1.2}[c["kernel"]])) < 0.02
    for c in alerts[0]["changes"])'
  changes_json 'all(abs(c["log_change"] - math.log(1.05 / 1.2)) < 0.02 and c["kernel"] == "tiled" and c["p"] <= 0.001
    for c in alerts[1]["changes"])'
  changes_json 'collections.Counter(c["anchor"] for a in alerts for c in a["changes"]) == {"": 3, "base": 3}'
  history changes -o csv
  [ "$(wc -l <stdout)" = 7 ] || tell "a line a change expected"
  history changes
  expect_out "000000000009  2026-01-01T00:09:00Z  4 series: 4 slower, 0 faster" \
    "000000000011  2026-01-01T00:17:00Z  2 series: 0 slower, 2 faster" "slower" "faster"
  cp stdout before
  history changes
  cmp before stdout
  # What is slower now is: avx2 since its only change; tiled was mended in part.
  history changes --fail-on slower
  expect_status 3
  history changes --kernel tiled --fail-on slower
  expect_status 0
  history changes --kernel tiled --fail-on any
  expect_status 3
  history show "$(value_of "SELECT key FROM series WHERE kernel = 'tiled' AND anchor = ''")"
  [ "$(grep -c slower stdout)" = 1 ] && [ "$(grep -c faster stdout)" = 1 ] || tell "two changes expected"
  [[ $(grep slower stdout) == *000000000009* && $(grep faster stdout) == *000000000011* ]] || tell "at 9 and 17 (11 in hexadecimal)"
}

@test "a step without a new commit is told as one of the machine" {
  import_runs journal 1 8 points=1 commit=5
  import_runs journal 9 16 points=1 commit=5 scale=1.3
  history changes
  expect_status 0
  expect_out "000000000005" "1 series: 1 slower" "the same commit stands before it"
}

@test "a step between builds with changes that no commit holds is none of the machine" {
  local run files=()
  for ((run = 1; run <= 16; run++)); do
    data journal "$run" points=1 commit=5 "scale=$((run > 8 ? 13 : 10))" |
      sed 's/"build_dirty": false/"build_dirty": true/' >"$run.jsonl"
    files+=("$run.jsonl")
  done
  history import -q "${files[@]}"
  expect_status 0
  history changes
  expect_out "000000000005+" "1 series: 1 slower" ", after 000000000005+)"
  [[ $out != *"same commit"* ]] || tell "nobody knows what was built"
}

@test "--fail-on: 4 while no series has the runs that a change takes; how many have not is told" {
  import_runs duet 1 1 points=3
  history changes --fail-on slower
  expect_status 4
  [[ $err == *"no change in 3 series, of which 3 have fewer than the 6 runs"* ]] || tell "three series expected"
  [[ $err == *"--fail-on: 3 of 3 series tell nothing: a change takes 6 runs"* ]] || tell "three series expected"
  import_runs duet 2 5 points=3
  history changes --fail-on any --times
  expect_status 4
  import_runs duet 6 6 points=1
  history changes --fail-on slower -o json
  expect_status 0
  [ "$err" = "--fail-on: 2 of 3 series tell nothing: a change takes 6 runs" ] || tell "one series could tell"
  # Times that are many enough are no ratios.
  import_runs journal 1 8 points=2 prefix=times
  history changes --kernel tiled --fail-on slower
  expect_status 4
}

@test "a step between machines, or of one run or two, is none; the third shows where it began" {
  import_runs journal 1 8
  import_runs journal 9 16 scale=2 machine=machine-b prefix=other
  import_runs journal 17 17 scale=2
  changes_json 'alerts == []'
  import_runs journal 18 18 scale=2
  changes_json 'alerts == []'
  import_runs journal 19 19 scale=2
  changes_json 'len(alerts) == 1 and alerts[0]["slower"] == 2 and alerts[0]["commit"][:12] == "000000000011"'
}
