-- SPDX-License-Identifier: Apache-2.0
--
-- A history as version 1 of its schema had it, with one run of two points: what is migrated must come from here, not from
-- what the program has become.
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  time_utc TEXT NOT NULL,
  machine_key TEXT NOT NULL,
  host TEXT, cpu_model TEXT, config TEXT,
  build_commit TEXT, build_dirty INTEGER);
CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  machine_key TEXT NOT NULL, compiler TEXT NOT NULL, flags TEXT NOT NULL, kernel_release TEXT NOT NULL,
  page_mode TEXT NOT NULL, problem_key TEXT NOT NULL, problem TEXT NOT NULL, rule TEXT NOT NULL,
  dtype TEXT NOT NULL, kernel TEXT NOT NULL, schedule TEXT NOT NULL, placement TEXT NOT NULL, mem TEXT NOT NULL,
  threads INTEGER NOT NULL, cache TEXT NOT NULL);
CREATE TABLE result (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES run (id),
  point_id TEXT NOT NULL,
  series INTEGER REFERENCES series (id),
  status TEXT NOT NULL, reason TEXT,
  median_ns REAL, ci95_low_ns REAL, ci95_high_ns REAL, ci_scope TEXT, mad_ns REAL, samples INTEGER,
  log_median_ns REAL, standard_error REAL,
  roof_fraction REAL, gflops REAL, quality TEXT,
  UNIQUE (run, point_id));
CREATE INDEX result_by_series ON result (series);
CREATE VIEW point AS
  SELECT result.series, run.time_utc, run.run_id, run.build_commit, run.build_dirty,
  result.log_median_ns AS value, result.standard_error, result.median_ns, result.ci95_low_ns,
  result.ci95_high_ns, result.roof_fraction, result.samples, result.quality
  FROM result JOIN run ON run.id = result.run
  WHERE result.series IS NOT NULL;
PRAGMA application_id = 1635017320;
PRAGMA user_version = 1;
INSERT INTO run VALUES (1, 'old-1', '2025-12-01T00:00:00Z', 'machine-a', 'bench', 'Made-up CPU', 'made-up', 'abc', 0);
INSERT INTO series VALUES (1, '00112233445566aa', 'machine-a', 'gcc 12', '-O3', '6.1', '2m', '0011223344556677',
  'scaled_dot_product f32  B 1  H 8  S 512  D 64', 'scaled_dot_product', 'f32', 'avx2', 'auto', 'compact', 'local', 2,
  'warm');
INSERT INTO result VALUES (1, 1, '000000000000000a', 1, 'ok', NULL, 1000000.0, 990000.0, 1010000.0, 'within_process',
  5000.0, 9, 13.815510557964274, 0.0051, 0.5, 500.0, 'clean');
INSERT INTO result VALUES (2, 1, '000000000000000b', NULL, 'failed', 'signal 11', NULL, NULL, NULL, NULL, NULL, 0, NULL,
  NULL, NULL, NULL, NULL);
