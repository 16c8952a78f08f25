# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the tests of the history share: made-up files, and the database seen by another reader.

data() { # ARGUMENTS of history_data.py...
  python3 "$BATS_TEST_DIRNAME/history_data.py" "$@"
}

history() { # PART ARGUMENTS...: with the database of the test
  local part=$1
  shift
  attempt "$ATTNBENCH" history "$part" --db h.db "$@"
}

version_1() { # a database as version 1 had it
  python3 -c 'import sqlite3, sys; c = sqlite3.connect("h.db"); c.executescript(open(sys.argv[1]).read()); c.commit()' \
    "$BATS_TEST_DIRNAME/history_v1.sql"
}

value_of() { # QUERY: the one value that it gives, by a reader of its own
  python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' h.db "$1"
}

expect_value() { # QUERY VALUE
  local found
  found=$(value_of "$1")
  [ "$found" = "$2" ] || tell "$1: $found, but $2 expected"
}

sound() { # SQLite finds no fault with the database
  expect_value "PRAGMA integrity_check" ok
  expect_value "SELECT count(*) FROM pragma_foreign_key_check" 0
}

# KIND FROM TO ARGUMENTS...: runs FROM to TO into the database.
import_runs() {
  local kind=$1 from=$2 to=$3 run
  shift 3
  local files=()
  for ((run = from; run <= to; run++)); do
    data "$kind" "$run" "$@" >"$kind-$run.json"
    files+=("$kind-$run.json")
  done
  history import -q "${files[@]}"
  expect_status 0
}
