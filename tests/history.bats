#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# attnbench history import: nothing lost and nothing twice, whoever imports and whatever dies; what is no history stays
# as it is.

# shellcheck source=tests/helpers.bash
. "$BATS_TEST_DIRNAME/helpers.bash"
# shellcheck source=tests/history.bash
. "$BATS_TEST_DIRNAME/history.bash"

@test "made-up journals are results files" {
  data journal 1 points=5 >run.jsonl
  valid_journal run.jsonl
}

@test "help of each part; refusals name what is wrong" {
  local part
  for part in import list show changes sql; do
    attempt "$ATTNBENCH" history "$part" --help
    expect_status 0
    expect_out "attnbench history $part" --db --help
    refused history "$part" --frobnicate -- --frobnicate "history $part"
  done
  refused history -- import list show changes sql
  refused history frobnicate -- frobnicate
  refused history import --db h.db -- "which results files"
  refused history show --db h.db -- "which series"
  refused history sql --db h.db -- "which query"
  refused history sql --db h.db 'SELECT 1' 'SELECT 2' -- "SELECT 2"
  refused history list --fail-on slower -- --fail-on list
  refused history list --limit 0 -- --limit 0
  refused history list -o xml -- "-o xml"
  refused history changes --fail-on faster -- "--fail-on faster"
  refused history list -- --db results/history.db
  refused history list --db none.db -- "--db none.db" "no such file"
  [ ! -e h.db ] && [ ! -e none.db ]
}

@test "without --db a checkout has results/history.db" {
  mkdir results configs
  data journal 1 >run.jsonl
  attempt "$ATTNBENCH" history import run.jsonl
  expect_status 0
  [ -s results/history.db ]
  attempt "$ATTNBENCH" history list -o csv
  [ "$(wc -l <stdout)" = 3 ] || tell "two series expected"
}

@test "imported twice, nothing is added and that is told" {
  data journal 1 points=3 >run.jsonl
  history import run.jsonl
  expect_status 0
  [ -z "$out" ] && [[ $err == "run.jsonl: 3 points added" ]] || tell "3 points expected"
  history sql "SELECT * FROM result JOIN run ON run.id = result.run" -o csv
  cp stdout before
  history import run.jsonl run.jsonl
  expect_status 0
  [ "$(grep -c '^run.jsonl: 0 points added; 3 in h.db already$' stderr)" = 2 ] || tell "nothing should be added"
  history sql "SELECT * FROM result JOIN run ON run.id = result.run" -o csv
  cmp before stdout
  sed '3s/"median_ns": [0-9.]*/"median_ns": 7.0/' run.jsonl >other.jsonl
  history import -q other.jsonl
  expect_status 0
  [[ $err == *"other.jsonl: warning: 1 of the points"*"which is kept"* ]] || tell "a warning expected"
  history sql "SELECT * FROM result JOIN run ON run.id = result.run" -o csv
  cmp before stdout
  ls -A >there
  ! grep -q 'h\.db-' there || tell "nothing should lie beside the database"
}

@test "standard input, points without a time, a torn last line" {
  data journal 1 points=4 >run.jsonl
  python3 - <<'PY'
import json

lines = [json.loads(line) for line in open("run.jsonl")]
for line, status in zip(lines[2:], ("skipped", "wrong", "failed")):
    line.update(status=status, reason="because", median_ns=None, samples_ns=[], page_mode=None, noise=None)
text = "".join(json.dumps(line) + "\n" for line in lines)
open("torn.jsonl", "w").write(text + text.splitlines()[1][:100])
PY
  status=0
  "$ATTNBENCH" history import --db h.db - <torn.jsonl 2>err || status=$?
  [ "$status" = 0 ]
  grep -qx "standard input: the last line is torn (the run was killed) and left out" err
  grep -qx "standard input: 4 points added (3 without a time)" err
  expect_value "SELECT count(*) FROM point" 1
  expect_value "SELECT group_concat(status) FROM result" ok,skipped,wrong,failed
  expect_value "SELECT count(*) FROM series" 1
}

@test "a bad file is refused by file and line, and nothing of it is kept" {
  data journal 1 points=3 >run.jsonl
  : >empty.jsonl
  refused history import --db h.db empty.jsonl -- empty.jsonl empty
  refused history import --db h.db missing.jsonl -- missing.jsonl "No such file"
  sed '3s/^{/{{/' run.jsonl >broken.jsonl
  refused history import --db h.db broken.jsonl -- broken.jsonl:3: "not JSON"
  sed '4s/"median_ns": [0-9.]*/"median_ns": null/' run.jsonl >timeless.jsonl
  refused history import --db h.db timeless.jsonl -- timeless.jsonl:4: median_ns
  sed '4s/"run_id": "run-1"/"run_id": "run-2"/' run.jsonl >stray.jsonl
  refused history import --db h.db stray.jsonl -- stray.jsonl:4: "no context of run run-2"
  sed '1s/"time_utc": "[^"]*"/"time_utc": "yesterday"/' run.jsonl >when.jsonl
  refused history import --db h.db when.jsonl -- when.jsonl:1: yesterday
  tail -n +2 run.jsonl >headless.jsonl
  refused history import --db h.db headless.jsonl -- headless.jsonl:1:
  sed 's/result\/1/result\/9/' run.jsonl >later.jsonl
  refused history import --db h.db later.jsonl -- later.jsonl:2: attnbench.result/9
  data duet 1 >duet.json
  sed 's/"points": \[/"points": 5, "x": [/' duet.json >pointless.json
  refused history import --db h.db pointless.json -- pointless.json points
  sed 's/"kernel": "tiled"/"kernel": 3/' duet.json >nameless.json
  refused history import --db h.db nameless.json -- nameless.json "points[1]" kernel
  data duet-lines 1 >lines.jsonl
  sed '3s/"log_ratio": [-0-9.e]*/"log_ratio": "fast"/' lines.jsonl >wordy.jsonl
  refused history import --db h.db wordy.jsonl -- wordy.jsonl:3: log_ratio
  sed '2s/^{/{{/' lines.jsonl >braces.jsonl
  refused history import --db h.db braces.jsonl -- braces.jsonl:2:
  sed '3s/duet\/1/result\/1/' lines.jsonl >mixed.jsonl
  refused history import --db h.db mixed.jsonl -- mixed.jsonl:3: attnbench.result/1
  sed 's/duet\/1/duet\/2/' duet.json >version.json
  refused history import --db h.db version.json -- version.json attnbench.duet/2
  head -n 40 duet.json >half.json
  refused history import --db h.db half.json -- half.json:41: "not JSON"
  expect_value "SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM result) + (SELECT count(*) FROM series)" 0
  sed 's/machine-a/machine-b/' run.jsonl >moved.jsonl
  history import -q run.jsonl
  refused history import --db h.db moved.jsonl -- moved.jsonl:1 run-1 machine-b machine-a
  expect_value "SELECT count(*) FROM result" 3
}

@test "8 imports at once into a new database: none is lost" {
  local i jobs=() code=0
  for i in 1 2 3 4 5 6 7 8; do data journal "$i" points=300 >"$i.jsonl"; done
  for i in 1 2 3 4 5 6 7 8; do
    "$ATTNBENCH" history import --db h.db "$i.jsonl" 2>"$i.err" &
    jobs+=($!)
  done
  for i in "${jobs[@]}"; do wait "$i" || code=$?; done
  cat ./*.err
  [ "$code" = 0 ]
  [ "$(grep -c "300 points added" ./*.err | grep -c ":1$")" = 8 ]
  expect_value "SELECT count(*) FROM run" 8
  expect_value "SELECT count(*) FROM result" 2400
  expect_value "SELECT count(*) FROM series" 300
  expect_value "SELECT min(n) FROM (SELECT count(*) AS n FROM point GROUP BY series)" 8
  sound
}

@test "8 processes that find a database of version 1 at once: it is migrated once, and nothing is lost" {
  local i jobs=() code=0
  version_1
  for i in 1 2 3 4 5 6; do data journal "$i" points=50 >"$i.jsonl"; done
  for i in 1 2 3 4 5 6; do
    "$ATTNBENCH" history import -q --db h.db "$i.jsonl" 2>"$i.err" &
    jobs+=($!)
  done
  for i in 7 8; do
    "$ATTNBENCH" history list --db h.db -o csv >"$i.csv" 2>"$i.err" &
    jobs+=($!)
  done
  for i in "${jobs[@]}"; do wait "$i" || code=$?; done
  cat ./*.err
  [ "$code" = 0 ]
  grep -q 00112233445566aa 7.csv
  grep -q 00112233445566aa 8.csv
  expect_value "PRAGMA user_version" 2
  expect_value "SELECT count(*) FROM run" 7
  expect_value "SELECT count(*) FROM result" 302
  expect_value "SELECT count(*) FROM pragma_table_info('series') WHERE name = 'anchor'" 1
  sound
}

@test "a lock that is not let go of: given up after one wait, exit 5" {
  import_runs journal 1 1
  data journal 2 >2.jsonl
  python3 - "$ATTNBENCH" <<'PY'
import os, sqlite3, subprocess, sys, time

holder = sqlite3.connect("h.db", isolation_level=None)
holder.execute("BEGIN IMMEDIATE")
began = time.monotonic()
importer = subprocess.run([sys.argv[1], "history", "import", "--db", "h.db", "2.jsonl"], timeout=60,
                          env={**os.environ, "ATTNBENCH_HISTORY_WAIT": "2s"}, capture_output=True)
waited = time.monotonic() - began
assert importer.returncode == 5, importer
assert b"--db h.db" in importer.stderr and b"locked" in importer.stderr, importer
assert 1.5 < waited < 20, waited
holder.execute("ROLLBACK")
PY
  expect_value "SELECT count(*) FROM run" 1
  history import 2.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM run" 2
  ATTNBENCH_HISTORY_WAIT=never refused history list --db h.db -- ATTNBENCH_HISTORY_WAIT never
}

# What a kill leaves while an empty file is turned to write-ahead logging: a first page without tables, and a journal that
# says that there were no pages before.
@test "a database whose maker was killed at its first page is made anew; another program's is left for it to mend" {
  data journal 1 >run.jsonl
  python3 - <<'PY'
import sqlite3, struct

def leave(name, pages, *statements):
    c = sqlite3.connect(name)
    for statement in statements:
        c.execute(statement)
    c.commit()
    c.execute("VACUUM")
    c.close()
    head = struct.pack(">8s5I", bytes.fromhex("d9d505f920a163d7"), 0, 0, pages, 512, 4096)
    open(name + "-journal", "wb").write(head.ljust(512, b"\0"))

leave("h.db", 0, "CREATE TABLE t (a)", "DROP TABLE t")
leave("read.db", 0, "CREATE TABLE t (a)", "DROP TABLE t")
leave("other.db", 2, "CREATE TABLE t (a)")
PY
  [ "$(stat -c %s h.db)" = 4096 ]
  refused history list --db read.db -- "--db read.db" empty
  history import run.jsonl
  expect_status 0
  [ ! -e h.db-journal ]
  expect_value "SELECT count(*) FROM result" 2
  sound
  sha256sum other.db other.db-journal >before
  refused history import --db other.db run.jsonl -- "no history"
  refused history list --db other.db -- "no history"
  sha256sum -c before
}

@test "killed while it writes, an import leaves nothing of its file and a sound database" {
  [ "$MODE" = release ] || skip "a sanitizer is too slow for the moment to be met"
  data journal 1 >first.jsonl
  data journal 2 points=20000 >second.jsonl
  history import -q first.jsonl
  python3 - "$ATTNBENCH" >told <<'PY'
import os, subprocess, sys, time

# What does not fit SQLite's cache is in the log before the transaction ends: then it is under way.
importer = subprocess.Popen([sys.argv[1], "history", "import", "--db", "h.db", "second.jsonl"])
while importer.poll() is None:
    try:
        if os.stat("h.db-wal").st_size > 100000:
            break
    except FileNotFoundError:
        pass
importer.kill()
print(importer.wait())
PY
  [ "$(cat told)" = -9 ] || tell "it should have been killed: $(cat told)"
  sound
  expect_value "SELECT count(*) FROM result" 2
  expect_value "SELECT count(*) FROM run" 1
  history import second.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM result" 20002
  sound
}

@test "a database of a newer version is refused and stays as it is" {
  data journal 1 >run.jsonl
  history import -q run.jsonl
  python3 -c 'import sqlite3; c = sqlite3.connect("h.db"); c.execute("PRAGMA user_version = 99"); c.close()'
  sha256sum h.db >before
  local part
  for part in "import run.jsonl" list "show 1" changes "sql SELECT(1)"; do
    # shellcheck disable=SC2086 # words
    refused history ${part%% *} --db h.db ${part#"${part%% *}"} -- "--db h.db" "version 99" newer
  done
  sha256sum -c before
  [ ! -e h.db-wal ]
  [ ! -e h.db-shm ]
}

@test "a newer version that stands in the log alone is refused, too" {
  data journal 1 >run.jsonl
  history import -q run.jsonl
  python3 -c 'import os, sqlite3
c = sqlite3.connect("h.db")
c.execute("PRAGMA user_version = 99")
os._exit(0)'
  [ -s h.db-wal ]
  sha256sum h.db h.db-wal >before
  local part
  for part in "import run.jsonl" list "show 1" changes "sql SELECT(1)"; do
    # shellcheck disable=SC2086 # words
    refused history ${part%% *} --db h.db ${part#"${part%% *}"} -- "--db h.db" "version 99" newer
  done
  sha256sum -c before
}

@test "what is no history is refused and stays as it is" {
  data journal 1 >run.jsonl
  cp run.jsonl text.db
  python3 -c 'import sqlite3; c = sqlite3.connect("other.db"); c.execute("CREATE TABLE run (id)"); c.commit()'
  python3 -c 'import sqlite3; c = sqlite3.connect("later.db"); c.execute("CREATE TABLE t (id)"); c.execute("PRAGMA application_id = 1635017320"); c.commit()'
  python3 -c 'import sqlite3; c = sqlite3.connect("log.db"); c.execute("PRAGMA journal_mode = WAL"); c.execute("CREATE TABLE run (id)"); c.commit(); c.close()'
  [ ! -e log.db-wal ]
  mkdir folder.db
  sha256sum text.db other.db later.db log.db >before
  local part
  for part in "import run.jsonl" list; do
    # shellcheck disable=SC2086 # words
    refused history ${part%% *} --db text.db ${part#"${part%% *}"} -- "--db text.db" "no SQLite database"
    # shellcheck disable=SC2086
    refused history ${part%% *} --db other.db ${part#"${part%% *}"} -- "--db other.db" "no history"
    # shellcheck disable=SC2086
    refused history ${part%% *} --db later.db ${part#"${part%% *}"} -- "--db later.db" "no history"
    # shellcheck disable=SC2086
    refused history ${part%% *} --db log.db ${part#"${part%% *}"} -- "--db log.db" "no history"
    # shellcheck disable=SC2086
    refused history ${part%% *} --db folder.db ${part#"${part%% *}"} -- "--db folder.db"
  done
  sha256sum -c before
  [ ! -e log.db-wal ]
  [ ! -e log.db-shm ]
  : >empty.db
  refused history list --db empty.db -- "--db empty.db" empty
  attempt "$ATTNBENCH" history import --db empty.db run.jsonl
  expect_status 0
  attempt "$ATTNBENCH" history import --db missing/h.db run.jsonl
  expect_refusal 5 "--db missing/h.db"
}

@test "a database of version 1 is migrated with what it holds, once" {
  version_1
  expect_value "PRAGMA user_version" 1
  history list -o jsonl
  expect_status 0
  expect_out '"series":"00112233445566aa"' '"points":1' '"anchor":""' '"median_ns":1000000.0'
  expect_value "PRAGMA user_version" 2
  expect_value "SELECT group_concat(status) FROM result" ok,failed
  data duet 1 >duet.json
  history import duet.json
  expect_status 0
  expect_value "SELECT count(*) FROM ratio" 2
  expect_value "SELECT count(*) FROM point" 3
  # One that is new has the same tables as one that came here.
  data journal 1 >run.jsonl
  attempt "$ATTNBENCH" history import --db new.db run.jsonl
  python3 - <<'PY'
import sqlite3

old, new = (dict(sqlite3.connect(name).execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
            for name in ("h.db", "new.db"))
old = {name: " ".join(sql.replace(",", " , ").split()).replace("( ", "(") for name, sql in old.items()}
new = {name: " ".join(sql.replace(",", " , ").split()).replace("( ", "(") for name, sql in new.items()}
assert old == new, (old, new)
PY
  sound
}

@test "series are kept apart by all that makes figures incomparable, and by nothing else" {
  data journal 1 points=1 >1.jsonl
  data journal 2 points=1 >2.jsonl
  local n=3 change
  for change in '1s/machine-a/machine-b/' '1s/gcc 12/gcc 13/' '1s/-O3/-O2/' '1s/"kernel_release": "6.1"/"kernel_release": "6.2"/' \
    '2s/"page_mode": "2m"/"page_mode": "4k"/' '2s/"S_kv": 512/"S_kv": 513/' '2s/"kernel": "avx2"/"kernel": "tiled"/' \
    '2s/"schedule_requested": "auto"/"schedule_requested": "bhq"/' '2s/"placement": "compact"/"placement": "smt"/' \
    '2s/"threads": 2/"threads": 1/' '2s/"cache": "warm"/"cache": "cold"/' '2s/"dtype": "f32"/"dtype": "bf16"/' \
    '2s/"mem": "local"/"mem": "interleave"/'; do
    data journal "$n" points=1 | sed "$change" >"$n.jsonl"
    cmp -s <(data journal "$n" points=1) "$n.jsonl" && tell "$change should change something"
    n=$((n + 1))
  done
  # The same point with another schedule chosen, and numbers and fields written another way.
  data journal "$n" points=1 | sed '2s/"schedule": "bhq"/"schedule": "bh"/; 2s/"B": 1,/"B": 1.0, "later": 1,/' >"$n.jsonl"
  history import -q ./*.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM series" 14
  expect_value "SELECT max(n) FROM (SELECT count(*) AS n FROM point GROUP BY series)" 3
}

@test "keys of series are what databases hold: FNV-1a of the problem's fields in their order, without what is null" {
  data journal 1 points=1 >1.jsonl
  history import -q 1.jsonl
  python3 - <<'PY'
import sqlite3

def fnv(*texts):
    state = 14695981039346656037
    for byte in b"".join(text.encode() + b"\0" for text in texts):
        state = (state ^ byte) * 1099511628211 % 2**64
    return f"{state:016x}"

problem = fnv('rule="scaled_dot_product";dtype="f32";layout="BHSD";B=1;H=8;H_kv=8;S_q=512;S_kv=512;D=64;D_v=64;scale=0.125;'
              'causal="none";kv_lengths="full";bias=false;weights=false;alias="none";fill="normal";seed=1;')
key = fnv("2", "machine-a", "gcc 12", "-O3", "6.1", "2m", "avx2", "auto", "compact", "local", "warm", "", problem)
stored = sqlite3.connect("h.db").execute("SELECT problem_key, key FROM series").fetchall()
assert stored == [(problem, key)], (stored, problem, key)
PY
}

@test "the standard error is the interval's, else the MAD's" {
  data journal 1 points=3 noise=0 | sed '3s/"ci95_low_ns": [0-9.]*/"ci95_low_ns": null/
    4s/"ci95_low_ns": [0-9.]*/"ci95_low_ns": null/; 4s/"mad_ns": [0-9.]*/"mad_ns": 0.0/' >run.jsonl
  history import -q run.jsonl
  # 0.01 / 1.96; 1.2533 * 1.4826 * 0.005 / sqrt(9); a MAD of 0 tells nothing.
  expect_value "SELECT round(standard_error, 7) FROM result WHERE point_id LIKE '%0'" 0.005102
  expect_value "SELECT round(standard_error, 7) FROM result WHERE point_id LIKE '%1'" 0.0030969
  expect_value "SELECT typeof(standard_error) FROM result WHERE point_id LIKE '%2'" null
  expect_value "SELECT round(value, 9) FROM point WHERE median_ns = 1e6" 13.815510558
}

@test "ratios to an anchor are series of their own, one for each anchor" {
  import_runs duet 1 3
  data duet 4 | sed 's/"a": "base"/"a": "older base"/' >other.json
  data journal 5 >run.jsonl
  history import other.json run.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM series" 6
  history import other.json
  [[ $err == "other.json: 0 points added; 2 in h.db already" ]] || tell "nothing should be added"
  history list --kernel avx2 -o csv
  [ "$(cut -d, -f 17 stdout | sort | xargs)" = "anchor base older base" ] || tell "anchors expected in column 17"
  expect_value "SELECT count(*) FROM ratio WHERE processes = 8 AND standard_error = 0.01 AND verdict = 'pass'" 8
  expect_value "SELECT current FROM ratio WHERE run = 2 LIMIT 1" "build 2"
}

@test "duets as duet writes them: lines, or a document with the context inside; the kernel is that of side b" {
  data duet-lines 1 points=3 >lines.jsonl
  printf '{"schema": "attnb' >>lines.jsonl
  history import lines.jsonl
  expect_status 0
  [[ $err == *"lines.jsonl: the last line is torn"*"lines.jsonl: 3 points added" ]] || tell "3 points expected"
  python3 -c 'import json
context, *records = [json.loads(line) for line in open("lines.jsonl").read().splitlines()[:-1]]
json.dump({"context": context, "points": records}, open("document.json", "w"), indent=2)'
  history import document.json
  expect_status 0
  [[ $err == "document.json: 0 points added; 3 in h.db already" ]] || tell "nothing should be added"
  expect_value "SELECT group_concat(kernel) FROM (SELECT kernel FROM series ORDER BY kernel)" avx2,avx512,tiled
  expect_value "SELECT group_concat(DISTINCT anchor) FROM series" anchor.so:naive
}

@test "an anchor is a kernel of one build: another build in its place begins a series, its own in another place does not" {
  local run
  for run in 1 2 3 4; do data duet-lines "$run" points=1 digest=00000000000000aa >"$run.jsonl"; done
  sed -i 's/"a": "anchor.so/"a": ".\/anchor.so/' 2.jsonl
  sed -i 's/"a_digest": "00000000000000aa"/"a_digest": "00000000000000bb"/' 3.jsonl
  sed -i 's/"a_digest": "00000000000000aa"/"a_digest": null/' 4.jsonl
  history import -q 1.jsonl 2.jsonl 3.jsonl 4.jsonl
  expect_status 0
  expect_value "SELECT count(*) FROM series" 3
  expect_value "SELECT group_concat(anchor) FROM (SELECT anchor FROM series ORDER BY anchor)" \
    anchor.so:naive,naive@00000000000000aa,naive@00000000000000bb
  expect_value "SELECT count(*) FROM ratio JOIN series ON series.id = ratio.series WHERE anchor = 'naive@00000000000000aa'" 2
  # Two kernels of one build are two anchors.
  data duet-lines 5 points=1 digest=00000000000000aa | sed 's/anchor.so:naive/anchor.so:tiled/' >5.jsonl
  history import -q 5.jsonl
  expect_value "SELECT count(*) FROM series" 4
}

@test "ratios are kept apart by page mode and by memory policy" {
  data duet-lines 1 points=1 >1.jsonl
  data duet-lines 2 points=1 | sed 's/"page_mode": "2m"/"page_mode": "4k"/' >2.jsonl
  data duet-lines 3 points=1 | sed 's/"mem": "local"/"mem": "node:1"/' >3.jsonl
  data duet-lines 4 points=1 >4.jsonl
  history import -q ./*.jsonl
  expect_status 0
  expect_value "SELECT group_concat(page_mode || ' ' || mem) FROM (SELECT * FROM series ORDER BY page_mode, mem)" \
    "2m local,2m node:1,4k local"
  expect_value "SELECT count(*) FROM ratio" 4
}

@test "the ratio of a point that went wrong or failed at last is none" {
  data duet-lines 1 points=3 | sed '2s/"status": "ok"/"status": "wrong"/; 3s/"status": "ok"/"status": "failed"/' >1.jsonl
  history import 1.jsonl
  expect_status 0
  [[ $err == "1.jsonl: 1 point added" ]] || tell "one point expected"
  expect_value "SELECT kernel FROM series" avx512
}

@test "of 2 to 5 launches no standard error is made up from their pooled samples" {
  data journal 1 points=2 | sed '2,3s/"ci95_low_ns": [0-9.]*/"ci95_low_ns": null/
    2s/"ci_scope": "within_process"/"ci_scope": null/' >run.jsonl
  history import -q run.jsonl
  expect_value "SELECT typeof(standard_error) FROM result WHERE point_id LIKE '%0'" null
  expect_value "SELECT typeof(standard_error) FROM result WHERE point_id LIKE '%1'" real
}

@test "results that cannot be written are exit 5" {
  import_runs journal 1 1
  status=0
  "$ATTNBENCH" history list --db h.db >/dev/full 2>err || status=$?
  [ "$status" = 5 ]
  data journal 2 points=3000 >big.jsonl
  status=0
  (ulimit -f 100 && exec "$ATTNBENCH" history import --db h.db big.jsonl) 2>err || status=$?
  [ "$status" = 5 ]
  grep -q -- "--db h.db" err
  expect_value "SELECT count(*) FROM run" 1
  sound
}
