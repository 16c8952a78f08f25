#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Plug-ins: a kernel compiled outside of the tree, in C, C++ and Rust, is listed, verified, timed and recorded like one
# that is built in; and files that are no plug-in are told apart before anything is measured.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"

setup_file() {
  local kernels=$BATS_TEST_DIRNAME/../kernels example=$BATS_TEST_DIRNAME/plugin
  cd "$BATS_FILE_TMPDIR" || return 1
  # Exactly what the README says, and then with warnings and optimization.
  cp "$example/mine.c" .
  cc -shared -fPIC mine.c -I "$kernels" -o mine.so || return 1
  cc -O2 -std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror -shared -fPIC mine.c \
    -I "$kernels" -o mine_fast.so || return 1
  if command -v c++ >/dev/null; then
    c++ -O2 -Wall -Wextra -Werror -shared -fPIC "$example/mine.cpp" -I "$kernels" -o mine_cpp.so || return 1
  fi
  if command -v rustc >/dev/null; then
    rustc -O --crate-type cdylib "$example/mine.rs" -o mine_rust.so || return 1
  fi
  # The same table with other words, for what must be refused.
  local number
  number=$(sed -n 's/^#define ATTN_ABI \([0-9]*\)u$/\1/p' "$kernels/attn.h")
  sed "s/\*abi = ATTN_ABI/*abi = $((number + 1))/" mine.c >newer.c
  sed 's/struct_size = sizeof mine/struct_size = sizeof mine + 8/' mine.c >larger.c
  sed 's/"mine"/"naive"/' mine.c >clash.c
  sed 's/"mine"/"one,two"/' mine.c >comma.c
  sed '/\.name = /d' mine.c >nameless.c
  sed '/\.run = /d' mine.c >runless.c
  sed 's/{&mine, 0}/{0}/' mine.c >empty.c
  sed 's/{&mine, 0}/{\&mine, \&mine, 0}/' mine.c >twice.c
  sed 's/ATTN_BIT(ATTN_SCALED_DOT_PRODUCT)/ATTN_BIT(40)/' mine.c >ruleless.c
  sed 's/attn_kernels(/something_else(/' mine.c >no_table.c
  sed 's/"online softmax,.*"/"\\xff\\xfe"/' mine.c >no_text.c
  { cat mine.c; printf '#include <stdlib.h>\n__attribute__((constructor)) static void load(void)\n{\n    abort();\n}\n'; } >crash.c
  { cat mine.c; printf '#include <stdlib.h>\n__attribute__((constructor)) static void load(void)\n{\n    exit(0);\n}\n'; } >exit.c
  { cat mine.c; printf '#include <stdio.h>\n__attribute__((constructor)) static void load(void)\n{\n    puts("hello");\n    fflush(stdout);\n}\n'; } >talk.c
  { cat mine.c; printf '#include <unistd.h>\n__attribute__((constructor)) static void load(void)\n{\n    for (;;)\n        pause();\n}\n'; } >hang.c
  local name
  for name in newer larger clash comma nameless runless empty twice ruleless no_table no_text crash exit talk hang; do
    cmp -s "$name.c" mine.c && { echo "$name.c is mine.c"; return 1; }
    cc -shared -fPIC "$name.c" -I "$kernels" -o "$name.so" || return 1
  done
  # It is given half a minute, which passes while the other tests run.
  (
    status=0
    timeout -k 5 120 "$ATTNBENCH" run --dry-run --point-timeout 1s --plugin "$(plugin hang)" >hang.stdout 2>hang.stderr || status=$?
    echo "$status" >hang.status
  ) </dev/null >/dev/null 2>&1 3>&- &
}

plugin() {
  echo "$BATS_FILE_TMPDIR/$1.so"
}

one=(-S 32 -D 16 --threads 1)

@test "compiled as the README says, it is right wherever it does not refuse" {
  attempt "$ATTNBENCH" verify --plugin "$(plugin mine)" --kernel mine --rule scaled_dot_product --cases 60
  expect_status 0
  awk '$1 == "mine" && $2 >= 20 && $3 + $4 == 0 { found = 1 } END { exit !found }' "$work/stdout" || tell "20 checked expected"
  attempt "$ATTNBENCH" verify --plugin "$(plugin mine_fast)" --kernel mine -B 2 -H 4 --kv-heads 2 --q-len 0,1,17 \
    --kv-len 0,1,33 -D 1,19 --value-dim 7 --causal none,top_left,bottom_right --layout BHSD,BSHD
  expect_status 0
  expect_out "108 problems, 108 results checked, 0 wrong"
  attempt "$ATTNBENCH" verify --plugin "$(plugin mine_fast)" --kernel mine -B 2 --q-len 9 --kv-len 21 -D 8 --mask random:0.5 \
    --bias --kv-lengths ragged --window 4:4
  expect_status 0
  expect_out "1 results checked, 0 wrong"
}

@test "what README.md says to type gives a verified row" {
  # The code blocks of the section, in order: the file, then the commands.
  awk '/^## /{ here = $0 == "## Time your own kernel" } here && /^```/{ inside = !inside; n += inside; next }
       here && inside { print > ("block" n) }' "$root/README.md"
  [ ! -e block3 ]
  mv block1 mine.c
  ln -s "$root/kernels" kernels
  mkdir -p build/release
  ln -s "$ATTNBENCH" build/release/attnbench
  [ "$(wc -l <block2)" = 2 ]
  local compile time
  { read -ra compile; read -ra time; } <block2
  attempt "${compile[@]}"
  expect_status 0
  [ -z "$err" ] || tell "no warnings expected"
  attempt "${time[@]}" "${cheap[@]}" --out o.jsonl
  expect_status 0
  holds o.jsonl '{r["kernel"]: (r["status"], r["verified"]) for r in records}["mine"] == ("ok", "full")'
  holds o.jsonl '{r["kernel"] for r in records if r["status"] == "ok"} == {"mine", "naive", "tiled"}'
  attempt "${time[@]}" "${cheap[@]}" --causal bottom_right --out causal.jsonl
  holds causal.jsonl '{(r["kernel"], r["status"]) for r in records} >= {("mine", "skipped"), ("naive", "ok")}'
}

@test "in C++ and in Rust" {
  local files names
  files=$(plugin mine_fast) names=mine
  [ ! -e "$(plugin mine_cpp)" ] || files=$files,$(plugin mine_cpp) names=$names,mine_cpp
  [ ! -e "$(plugin mine_rust)" ] || files=$files,$(plugin mine_rust) names=$names,mine_rust
  [ "$names" != mine ] || skip "neither c++ nor rustc is here"
  attempt "$ATTNBENCH" verify --plugin "$files" --kernel "$names" --rule scaled_dot_product --cases 30
  expect_status 0
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin "$files" --kernel "$names" --causal bottom_right --out o.jsonl
  expect_status 0
  holds o.jsonl "[r['kernel'] for r in records] == '$names'.split(',')"
  holds o.jsonl 'all(r["status"] == "ok" and r["verified"] == "full" for r in records)'
  [ "$names" = mine,mine_cpp,mine_rust ] || skip "only $names: a compiler for the others is not here"
}

@test "what it refuses is skipped with its reason" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin "$(plugin mine)" --kernel mine,naive --softcap 5 --out o.jsonl
  expect_status 0
  holds o.jsonl '([(r["kernel"], r["status"], r["reason"]) for r in records] ==
    [("mine", "skipped", "mine has no softcap"), ("naive", "ok", None)])'
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin "$(plugin mine)" --kernel mine --dtype f16 --out f16.jsonl
  expect_status 77
  holds f16.jsonl '[(r["status"], r["reason"]) for r in records] == [("skipped", "mine does not do dtype f16")]'
}

@test "its records tell where it came from, and how to measure it again" {
  cp "$(plugin mine)" .
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin ./mine.so --kernel mine,naive --out o.jsonl
  expect_status 0
  valid_journal o.jsonl
  holds o.jsonl '{r["kernel"]: r["source"] for r in records} == {"mine": "plugin:./mine.so", "naive": "builtin"}'
  holds o.jsonl '[r["cpus"] for r in records][0] == [r["cpus"] for r in records][1] != []'
  holds o.jsonl 'all(r["status"] == "ok" and r["verified"] == "full" and r["gflops"] > 0 for r in records)'
  holds o.jsonl 'all(("--plugin ./mine.so" in r["repro"]) == (r["kernel"] == "mine") for r in records)'

  local repro
  repro=$(python -c 'import json, sys
print([r["repro"] for r in map(json.loads, open("o.jsonl")) if r.get("kernel") == "mine"][0])')
  read -ra words <<<"$repro"
  [ "${words[0]}" = attnbench ]
  attempt "$ATTNBENCH" "${words[@]:1}" "${cheap[@]}" --out again.jsonl
  expect_status 0
  python - <<'PY'
import json
ids = [[r["point_id"] for r in map(json.loads, open(f)) if r.get("kernel") == "mine"] for f in ("o.jsonl", "again.jsonl")]
assert ids[0] == ids[1] and len(ids[0]) == 1, ids
PY
}

@test "--resume goes on with it" {
  cp "$(plugin mine)" .
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16,32 -D 16 --threads 1 --plugin mine.so --kernel mine,naive --out o.jsonl
  expect_status 0
  head -n 2 o.jsonl >cut.jsonl
  attempt "$ATTNBENCH" run "${cheap[@]}" -S 16,32 -D 16 --threads 1 --plugin mine.so --kernel mine,naive --resume cut.jsonl
  expect_status 0
  holds cut.jsonl 'sorted((r["kernel"], r["S_q"]) for r in records) == sorted((k, s) for k in ("mine", "naive") for s in (16, 32))'
  holds cut.jsonl 'all(r["status"] == "ok" for r in records)'
}

@test "a config names plug-ins by the key plugin" {
  cp "$(plugin mine)" .
  printf '%s\n' 'name: ours' 'defaults:' '  plugin: [./mine.so]' '  kernel: [mine, naive]' '  S: 32' '  D: 16' '  threads: 1' \
    'sweeps:' '  - causal: [none, bottom_right]' >c.yaml
  attempt "$ATTNBENCH" run "${cheap[@]}" --config ./c.yaml --out o.jsonl
  expect_status 0
  holds o.jsonl 'len(records) == 4 and {r["kernel"] for r in records if r["status"] == "ok"} == {"mine", "naive"}'
}

@test "a path without a slash is a file of this folder; two plug-ins at once; the same one twice is one" {
  cp "$(plugin mine)" .
  sed 's/"mine"/"other"/' "$root/tests/plugin/mine.c" >other.c
  cc -shared -fPIC other.c -I "$root/kernels" -o other.so
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin mine.so,other.so --plugin mine.so --kernel 'mine,other' --out o.jsonl
  expect_status 0
  holds o.jsonl '([(r["kernel"], r["source"], r["status"]) for r in records] ==
    [("mine", "plugin:mine.so", "ok"), ("other", "plugin:other.so", "ok")])'
}

@test "every schedule that needs no split keys, on two threads; the others are refused with a reason" {
  [ "$(nproc)" -ge 2 ] || skip "one CPU"
  attempt "$ATTNBENCH" run "${cheap[@]}" -H 3 -S 48 -D 16 --threads 1,2 --schedule serial,bh,bhq,splitkv,own \
    --plugin "$(plugin mine_fast)" --kernel mine --out o.jsonl
  expect_status 0
  holds o.jsonl '({(r["schedule_requested"], r["threads"]) for r in records if r["status"] == "ok"} >=
    {("serial", 1), ("bh", 2), ("bhq", 2)})'
  holds o.jsonl '{r["status"] for r in records if r["schedule_requested"] in ("splitkv", "own")} == {"skipped"}'
  holds o.jsonl 'all(r["reason"] for r in records if r["status"] == "skipped")'
  holds o.jsonl 'all(len(r["cpus"]) == len(set(r["cpus"])) == r["threads"] for r in records if r["status"] == "ok")'
}

@test "one that starts threads in every call has all the CPUs of its placement for them" {
  [ "$(nproc)" -ge 2 ] || skip "one CPU"
  cc -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC "$root/tests/plugin/own_threads.c" -pthread -o own_threads.so -lm
  attempt "$ATTNBENCH" run "${cheap[@]}" -H 4 -S 64 -D 16 --threads 1,2 --plugin ./own_threads.so --kernel own_threads --out o.jsonl
  expect_status 0
  holds o.jsonl '[(r["schedule"], r["status"], len(r["cpus"])) for r in records] == [("own", "ok", 1), ("own", "ok", 2)]'
}

@test "layers are put together on top of its attention" {
  attempt "$ATTNBENCH" verify --plugin "$(plugin mine_fast)" --kernel mine --rule multi_head -B 2 -H 3 -S 12 -D 8 --layout BHSD,HBSD
  expect_status 0
  expect_out "2 problems, 2 results checked, 0 wrong"
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin "$(plugin mine_fast)" --kernel mine --rule multi_head -H 2 --out o.jsonl
  expect_status 0
  holds o.jsonl '[(r["status"], r["rule"]) for r in records] == [("ok", "multi_head")]'
  holds o.jsonl 'records[0]["phases_ns"]["projections"] > 0 and records[0]["phases_ns"]["attention"] > 0'
}

@test "report and export show it like the others" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin "$(plugin mine)" --kernel mine,naive --out o.jsonl
  expect_status 0
  attempt "$ATTNBENCH" export o.jsonl --format csv
  expect_status 0
  [ "$(grep -c "plugin:$(plugin mine)" "$work/stdout")" -ge 1 ] || tell "the source expected"
  attempt "$ATTNBENCH" show o.jsonl
  expect_status 0
  expect_out mine naive
  attempt "$ATTNBENCH" report o.jsonl -o o.html
  expect_status 0
  grep -q '\bmine\b' o.html
}

@test "list kernels shows it" {
  "$ATTNBENCH" list --help | grep -q -e --plugin || skip "list has no --plugin"
  attempt "$ATTNBENCH" list kernels --plugin "$(plugin mine)" --json
  expect_status 0
  python - "$work/stdout" <<'PY'
import json, sys
mine = [k for k in json.load(open(sys.argv[1]))["kernels"] if k["name"] == "mine"]
assert len(mine) == 1 and "scaled_dot_product" in mine[0]["rules"], mine
PY
}

refused_plugin() { # FILE STRING...
  local file=$1
  shift
  refused run "${one[@]}" --plugin "$file" --kernel naive --dry-run -- --plugin "$file" "$@"
}

@test "files that are no plug-in are refused before anything runs" {
  refused_plugin ./missing.so "No such file"
  printf 'no object, %080d\n' 0 >text.so
  refused_plugin ./text.so "invalid ELF header"
  refused_plugin text.so "invalid ELF header"
  mkdir folder.so
  refused_plugin ./folder.so
  refused_plugin "$(plugin no_table)" "exports no function attn_kernels"
  refused_plugin "$(plugin empty)" "has no kernels"
  refused_plugin "$(plugin larger)" "bytes, not"
  refused_plugin "$(plugin nameless)" "has no name"
  refused_plugin "$(plugin comma)" "has no name of letters"
  refused_plugin "$(plugin runless)" "mine has no run function"
  refused_plugin "$(plugin ruleless)" "mine does no rule"
  refused_plugin "$(plugin no_text)" "no summary that is UTF-8"
  refused_plugin "$(plugin twice)" "both named 'mine'"
}

@test "a name that is taken: both are named" {
  refused run "${one[@]}" --plugin "$(plugin clash)" -- "$(plugin clash)" "'naive'" builtin
  cp "$(plugin mine)" same.so
  refused run "${one[@]}" --plugin "$(plugin mine),./same.so" -- "$(plugin mine)" "./same.so" "'mine'"
}

@test "another ABI: not comparable, exit 4" {
  local number
  number=$(sed -n 's/^#define ATTN_ABI \([0-9]*\)u$/\1/p' "$root/kernels/attn.h")
  attempt "$ATTNBENCH" run "${one[@]}" --plugin "$(plugin newer)"
  expect_refusal 4 "$(plugin newer)" "ABI $((number + 1))" "ABI $number"
}

@test "one that dies when it is loaded" {
  [ "$MODE" = release ] || skip "a sanitizer has its own word to say"
  refused_plugin "$(plugin crash)" "when it was loaded: its process was killed by signal 6 (Aborted)"
  refused_plugin "$(plugin exit)" "when it was loaded: its process ended with status 0"
}

@test "one that hangs when it is loaded: told with the limit for that, which is not the points'" {
  local tries=0
  until [ -s "$BATS_FILE_TMPDIR/hang.status" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 120 ] || tell "it should have been killed"
    sleep 0.5
  done
  status=$(<"$BATS_FILE_TMPDIR/hang.status") out=$(<"$BATS_FILE_TMPDIR/hang.stdout")
  cp "$BATS_FILE_TMPDIR/hang.stderr" "$work/stderr"
  err=$(<"$work/stderr")
  expect_refusal 2 "hang.so, when it was loaded: still running after the limit for starting up, 30 s; killed"
  [[ $err != *--point-timeout* ]] || tell "--point-timeout has nothing to do with it"
}

@test "one that prints when it is loaded disturbs neither the protocol nor the data on stdout" {
  attempt "$ATTNBENCH" run "${cheap[@]}" "${one[@]}" --plugin "$(plugin talk)" --kernel mine -o jsonl --out o.jsonl
  expect_status 0
  holds "$work/stdout" '[r["status"] for r in records] == ["ok"]'
}
