#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Published runs: those that are here are valid, each thing that must not be published is found, and the script that
# makes them makes valid ones.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

setup_file() {
  BASE=$(mktemp -d)
  export BASE
  "$ATTNBENCH" run --samples 3 --min-time 0.01s -S 16,32 -D 16 --kernel naive,tiled --threads 1 -q --out "$BASE/run.jsonl" ||
    echo "the run ended with $?"
}

teardown_file() {
  rm -rf "$BASE"
}

# FOLDER [PYTHON]: a run that may be published, but for what the statements do to `context`, `records` or `table`.
folder_with() {
  mkdir -p "$1"
  python - "$BASE/run.jsonl" "$1" "${2:-}" <<'PY'
import json, os, sys

context, *records = [json.loads(line) for line in open(sys.argv[1])]
context.update(machine_key="00112233", config="small", build_commit="a" * 40, build_dirty=False)
for record in records:
    record["noise"]["quality"] = "clean"

def end(record, status, reason):
    record.update(status=status, reason=reason, gflops=None, gb_per_s=None, tokens_per_s=None, roof_fraction=None)

table = f"Run {context['run_id']}\n"
exec(sys.argv[3])
with open(os.path.join(sys.argv[2], "small.jsonl"), "w") as file:
    file.writelines(json.dumps(line) + "\n" for line in [context] + records)
if table is not None:
    with open(os.path.join(sys.argv[2], "small.md"), "w") as file:
        file.write(table)
PY
}

check_published() { # FOLDER...
  status=0
  out=$(python "$root/scripts/check-results" --published "$@" 2>err) || status=$?
  err=$(<err)
}

@test "the published runs that are here are valid" {
  check_published
  expect_status 0
  expect_out "published runs, 0 violations"
}

@test "a run with all that is asked of it passes" {
  folder_with some-cpu-00112233
  check_published some-cpu-00112233
  expect_status 0
  expect_out "4 records (4 ok, 0 noisy), 0 violations" "1 published runs, 0 violations"
}

@test "each thing that must not be published is found" {
  local fault expected
  while IFS='|' read -r fault expected; do
    rm -rf cpu-00112233
    folder_with cpu-00112233 "$fault"
    check_published cpu-00112233
    expect_status 1
    expect_out "$expected"
  done <<'FAULTS'
context["build_dirty"] = True|build_dirty: not the build of a commit
context["build_dirty"] = None|build_dirty: not the build of a commit
del context["build_dirty"]|build_dirty: not the build of a commit
context["build_commit"] = None|build_dirty: not the build of a commit
context["machine_key"] = "ffff"|machine_key: ffff is not the end of the folder's name
context["config"] = "other"|config: 'other' is not the file's name
records[1]["verified"] = "off"|small.jsonl:3: verified
records[1]["rows_checked"] = 0|small.jsonl:3: verified
records[1]["rough"] = True|small.jsonl:3: rough
records[1]["noise"] = None|small.jsonl:3: noise: None
records[1]["noise"]["quality"] = None|small.jsonl:3: noise/quality: None
records[0]["noise"]["quality"] = records[1]["noise"]["quality"] = "noisy"|2 of 4 points are noisy
end(records[1], "wrong", "row 0")|small.jsonl:3: status: wrong: row 0
end(records[1], "failed", "signal 9")|failed: signal 9
[end(r, "skipped", "no") for r in records]|no point is ok
records[2]["median_ns"] = "fast"|small.jsonl:4: median_ns
del records[2]["kernel"]|small.jsonl:4: the line: 'kernel' is a required property
records[2]["run_id"] = "other"|small.jsonl:4: run_id: no context of run other
records.append(records[0])|small.jsonl:6: point_id: this point of this run stands at line 2 already
table = None|the table of the run should stand beside it
table = "another run's table"|it is not the table of this file
FAULTS
}

@test "a point that failed and was measured again is no fault" {
  folder_with cpu-00112233 '
again, better = dict(context, run_id="later"), dict(records[1], run_id="later")
end(records[1], "failed", "signal 9")
records += [again, better]
table += "Run later"'
  check_published cpu-00112233
  expect_status 0
}

@test "a folder without runs is an error, and so is an unknown flag" {
  mkdir empty
  check_published empty
  expect_status 2
  status=0
  python "$root/scripts/check-results" --frobnicate x.jsonl >out || status=$?
  [ "$status" = 2 ]
}

@test "publish makes journals, tables, ceilings and an index that pass; a changed tree is refused" {
  [ "$MODE" = release ] || skip "builds"
  copy_tree "$work/tree"
  copy_objects "$work/tree"
  cd "$work/tree"
  cat >configs/tiny.yaml <<'YAML'
name: tiny
defaults: {min-time: 0.01s, samples: 7, threads: 1}
sweeps:
  - {name: tiny, S: [32], D: [16], kernel: [naive, tiled]}
YAML
  LIMIT=400 attempt scripts/publish --try "$work/tried" tiny
  expect_status 0
  local folder
  folder=$(echo "$work"/tried/*)
  [ "$out" = "$folder" ] || tell "the folder should be named"
  local file
  for file in README.md peak.json tiny.jsonl tiny.md; do
    [ -s "$folder/$file" ] || tell "$file is missing"
  done
  [ "$(find "$folder" -type f | wc -l)" = 4 ] || tell "four files expected: $(find "$folder")"
  # shellcheck disable=SC2016 # Markdown's backquotes
  grep -q '| \[tiny\](tiny.jsonl) | \[tiny.md\](tiny.md) | `attnbench run .*--config tiny.*` | .* | 2 | ' "$folder/README.md" ||
    tell "$(cat "$folder/README.md")"
  holds "$folder/tiny.jsonl" "'$folder'.endswith('-' + contexts[0]['machine_key']) and len(records) == 2"
  cd "$work"
  check_published "$folder" # rough figures are found out
  expect_status 1
  expect_out rough
  cd "$work/tree"
  attempt scripts/publish no-such-config
  expect_refusal 2 no-such-config
  git init -q . && git add -A && git -c user.name=t -c user.email=t@example.org commit -qm tree
  echo >>README.md
  attempt scripts/publish tiny
  expect_status 2
  [[ $err == *"the tree has changes"* ]] || tell "should refuse"
}
