#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Results files put together: nothing lost, nothing twice, every line the bytes that it was, and every reader at home in
# the result.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

# One run for all tests; the runs of other machines are made from it.
setup_file() {
  BASE=$(mktemp)
  export BASE
  "$ATTNBENCH" run --samples 3 --min-time 0.01s -S 16,32 -D 16 --kernel naive,tiled --threads 1 -o jsonl >"$BASE" 2>"$BASE.err" ||
    cat "$BASE.err"
}

teardown_file() {
  rm -f "$BASE" "$BASE.err"
}

# MACHINE RUN: the base run as another machine would have written it, with fields that this version does not know.
run_of() {
  python - "$BASE" "$1" "$2" <<'PY'
import json, sys

for text in open(sys.argv[1]):
    line = json.loads(text)
    line["run_id"] = sys.argv[3]
    if line["schema"].startswith("attnbench.context/"):
        line["machine_key"], line["cpu_model"] = sys.argv[2], "CPU of " + sys.argv[2]
        line["later_field"] = {"exact": "0.1000", "ünï": [1, 2]}
    else:
        line["later_field"] = 1.5
    # Neither compact nor sorted: bytes that no writer of ours would choose.
    print(json.dumps(line, ensure_ascii=False, separators=(" ,  ", " : ")))
PY
}

check() { # FILE: scripts/check-results finds fault with it, told in $out
  status=0
  out=$(python "$root/scripts/check-results" "$1") || status=$?
  expect_status 1
}

three_runs() { # a.jsonl, b.jsonl of two machines; a2.jsonl, another run of the first
  run_of machine-a run-a >a.jsonl
  run_of machine-b run-b >b.jsonl
  run_of machine-a run-a2 >a2.jsonl
}

@test "runs stand machine by machine, each context before its records, every line byte for byte" {
  three_runs
  attempt "$ATTNBENCH" merge a.jsonl b.jsonl a2.jsonl -o out.jsonl
  expect_status 0
  [ -z "$out" ] || tell "nothing on stdout expected"
  [[ $err == *"3 files: 2 machines, 3 runs, 12 records; 0 duplicates dropped"* ]] || tell "counts expected"
  cat a.jsonl a2.jsonl b.jsonl | cmp - out.jsonl
  valid_journal out.jsonl
}

@test "without -o the merged file is stdout, and nothing else is" {
  three_runs
  attempt "$ATTNBENCH" merge b.jsonl a.jsonl
  expect_status 0
  cat b.jsonl a.jsonl | cmp - stdout
}

@test "merged again, nothing changes: same run, same point stands once; the output may be an input" {
  three_runs
  attempt "$ATTNBENCH" merge a.jsonl b.jsonl a2.jsonl -o out.jsonl
  cp out.jsonl before
  attempt "$ATTNBENCH" merge a2.jsonl a.jsonl out.jsonl a.jsonl out.jsonl -o again.jsonl
  [[ $err == *"2 machines, 3 runs, 12 records; 24 duplicates dropped"* ]] || tell "24 duplicates expected"
  attempt "$ATTNBENCH" merge out.jsonl b.jsonl out.jsonl -o out.jsonl
  expect_status 0
  [[ $err == *"16 duplicates dropped"* && $err != *warning* ]] || tell "16 duplicates expected"
  cmp before out.jsonl
  [ "$(ls -A)" = "$(printf '%s\n' a.jsonl a2.jsonl again.jsonl b.jsonl before out.jsonl stderr stdout)" ] ||
    tell "nothing should lie about: $(ls -A)"
}

@test "a part of a run and the whole of it give the whole; a resumed run keeps its order" {
  three_runs
  head -n 3 a.jsonl >part.jsonl
  cat a.jsonl a2.jsonl >resumed.jsonl
  attempt "$ATTNBENCH" merge part.jsonl resumed.jsonl -o out.jsonl
  expect_status 0
  [[ $err == *"1 machine, 2 runs, 8 records; 2 duplicates dropped"* ]] || tell "2 duplicates expected"
  cmp resumed.jsonl out.jsonl
}

@test "a run that was exported as JSON Lines is the same run" {
  three_runs
  attempt "$ATTNBENCH" export a.jsonl --format jsonl -o exported.jsonl
  cmp -s a.jsonl exported.jsonl && tell "the export should have other bytes for this test to mean something"
  attempt "$ATTNBENCH" merge a.jsonl exported.jsonl -o out.jsonl
  expect_status 0
  [[ $err == *"4 duplicates dropped"* && $err != *warning* ]] || tell "4 duplicates, no warning expected"
  cmp a.jsonl out.jsonl
}

@test "a duplicate that differs is dropped, and told with its file and line" {
  three_runs
  sed '3s/"min_ns" : [0-9.]*/"min_ns" : 1.0/' a.jsonl >other.jsonl
  attempt "$ATTNBENCH" merge a.jsonl other.jsonl -o out.jsonl
  expect_status 0
  [[ $err == *"warning: 1 of the dropped differ"*other.jsonl:3* ]] || tell "a warning expected"
  cmp a.jsonl out.jsonl
}

@test "the torn last line of a killed run is left out and told" {
  three_runs
  head -c -20 b.jsonl >killed.jsonl
  attempt "$ATTNBENCH" merge a.jsonl killed.jsonl -o out.jsonl
  expect_status 0
  [[ $err == *"killed.jsonl: the last line is torn"* ]] || tell "should tell of the torn line"
  { cat a.jsonl && head -n 4 b.jsonl; } | cmp - out.jsonl
}

@test "what is no results file, or of another version, or has lost its context is refused by file and line" {
  three_runs
  sed '2s,attnbench.result/1,attnbench.result/2,' b.jsonl >newer.jsonl
  refused merge a.jsonl newer.jsonl -o out.jsonl -- newer.jsonl:2 attnbench.result/2
  sed '1s,attnbench.context/1,attnbench.context/9,' b.jsonl >newer.jsonl
  refused merge a.jsonl newer.jsonl -- newer.jsonl:1 attnbench.context/9
  { head -n 1 a.jsonl && tail -n +2 b.jsonl; } >stray.jsonl
  refused merge b.jsonl stray.jsonl -o out.jsonl -- stray.jsonl:2 run-b
  sed '1s/machine-b/machine-c/' b.jsonl >posing.jsonl
  refused merge b.jsonl posing.jsonl -o out.jsonl -- posing.jsonl:1 run-b b.jsonl:1
  sed 2s/.*/nonsense/ a.jsonl >broken.jsonl
  refused merge broken.jsonl -o out.jsonl -- broken.jsonl:2
  : >empty.jsonl
  refused merge a.jsonl empty.jsonl -o out.jsonl -- empty.jsonl
  refused merge a.jsonl missing.jsonl -o out.jsonl -- missing.jsonl
  refused merge -- "which results files"
  refused merge -o -- -o
  [ ! -e out.jsonl ] || tell "no output should be left"
}

@test "an output that cannot be written leaves what stood there" {
  three_runs
  cp b.jsonl out.jsonl
  # A limit of 1 KiB a file: less than the merged file has.
  # shellcheck disable=SC2016 # the inner shell expands it
  attempt bash -c 'ulimit -f 1; exec "$0" merge a.jsonl b.jsonl a2.jsonl -o out.jsonl' "$ATTNBENCH"
  expect_refusal 5 out.jsonl
  cmp b.jsonl out.jsonl
  ! ls out.jsonl.* 2>/dev/null || tell "nothing should lie beside it"
  attempt "$ATTNBENCH" merge a.jsonl -o no/such/folder.jsonl
  expect_refusal 5 no/such/folder.jsonl
  attempt "$ATTNBENCH" merge a.jsonl -o .
  expect_refusal 5 directory
  if [ -w /dev/full ]; then
    # shellcheck disable=SC2016
    attempt bash -c '"$0" merge a.jsonl >/dev/full' "$ATTNBENCH"
    expect_refusal 5 written
  fi
}

@test "the journal of a run that is under way is not replaced" {
  three_runs
  "$ATTNBENCH" run -S 64-512+64 --kernel naive --threads 1 --out busy.jsonl >first 2>&1 &
  local first=$!
  while [ ! -s busy.jsonl ] && kill -0 "$first" 2>/dev/null; do sleep 0.05; done
  attempt "$ATTNBENCH" merge a.jsonl -o busy.jsonl
  kill -KILL "$first"
  wait "$first" || true
  expect_refusal 5 busy.jsonl "a run is writing to it"
}

@test "a symbolic link stays one, permissions stay, and a pipe is written to" {
  three_runs
  cp a.jsonl real.jsonl
  chmod 640 real.jsonl
  ln -s real.jsonl link.jsonl
  attempt "$ATTNBENCH" merge link.jsonl b.jsonl -q -o link.jsonl
  expect_status 0
  [ -z "$err" ] || tell "-q: nothing on stderr expected"
  [ -L link.jsonl ] && [ "$(stat -c %a real.jsonl)" = 640 ] || tell "link or permissions lost"
  cat a.jsonl b.jsonl | cmp - real.jsonl
  mkfifo pipe
  cat pipe >piped &
  attempt "$ATTNBENCH" merge a.jsonl -o pipe
  wait $!
  expect_status 0
  cmp a.jsonl piped
}

@test "show and export tell the machines of a merged file apart" {
  three_runs
  # What failed on one machine is no second try of the other's.
  sed -i '2s/"status" : "ok"/"status" : "failed"/; 2s/"reason" : null/"reason" : "signal 9"/' a.jsonl
  attempt "$ATTNBENCH" merge a.jsonl b.jsonl -o out.jsonl
  attempt "$ATTNBENCH" show out.jsonl
  expect_status 0
  expect_out "CPU of machine-a" "(machine machine-a)" "(machine machine-b)" "failed: signal 9" "3 ok, 0 skipped, 0 wrong, 1 failed" \
    "4 ok, 0 skipped, 0 wrong, 0 failed"
  [ "$(awk 'length > 100' stdout)" = "" ] || tell "too wide"
  attempt "$ATTNBENCH" export out.jsonl --format csv
  python -c 'import collections, csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert collections.Counter((r["run_id"], r["machine_key"]) for r in rows) == {("run-a", "machine-a"): 4, ("run-b", "machine-b"): 4}, rows' stdout
  attempt "$ATTNBENCH" export out.jsonl --format md
  [ "$(grep -c '^## CPU of machine-' stdout)" = 2 ] && [ "$(grep -c '^| CPU | ' stdout)" = 2 ] || tell "two portraits expected"
  attempt "$ATTNBENCH" export out.jsonl --format json
  python -c 'import json, sys; d = json.load(open(sys.argv[1])); assert [c["machine_key"] for c in d["contexts"]] == ["machine-a", "machine-b"]' stdout
  attempt "$ATTNBENCH" show a.jsonl
  [[ $out != *"machine-a"* ]] || tell "one machine needs no name"
}

@test "--resume of a merged file is refused" {
  three_runs
  attempt "$ATTNBENCH" merge a.jsonl b.jsonl -o out.jsonl
  cp out.jsonl before
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16 -D 16 --kernel naive --threads 1 --resume out.jsonl
  expect_refusal 2 --resume out.jsonl "several machines"
  cmp before out.jsonl
}

@test "check-results finds a record without its context, and a point twice in a run" {
  three_runs
  { head -n 1 a.jsonl && tail -n +2 b.jsonl; } >stray.jsonl
  check stray.jsonl
  expect_out "stray.jsonl:2: run_id: no context of run run-b"
  { cat a.jsonl && tail -n 1 a.jsonl; } >twice.jsonl
  check twice.jsonl
  expect_out "twice.jsonl:6: point_id: this point of this run stands at line 5 already"
}
