/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a history, version by version; see history.h. `attnbench history sql` lets users read them, so a column
 * says in its name what it holds. The view `point` has what is compared over time: `value` is a logarithm, so that a
 * difference is a relative change; higher is slower.
 */
#include "history.h"

/* A series holds what may be compared: one problem and kernel on one machine, compiler, kernel release and page mode.
 */
static const char version_1[] =
    "CREATE TABLE run ("
    "  id INTEGER PRIMARY KEY,"
    "  run_id TEXT NOT NULL UNIQUE,"
    "  time_utc TEXT NOT NULL,"
    "  machine_key TEXT NOT NULL,"
    "  host TEXT, cpu_model TEXT, config TEXT,"
    "  build_commit TEXT, build_dirty INTEGER);"
    "CREATE TABLE series ("
    "  id INTEGER PRIMARY KEY,"
    "  key TEXT NOT NULL UNIQUE," /* digest of the others */
    "  machine_key TEXT NOT NULL, compiler TEXT NOT NULL, flags TEXT NOT NULL, kernel_release TEXT NOT NULL,"
    "  page_mode TEXT NOT NULL, problem_key TEXT NOT NULL, problem TEXT NOT NULL, rule TEXT NOT NULL,"
    "  dtype TEXT NOT NULL, kernel TEXT NOT NULL, schedule TEXT NOT NULL, placement TEXT NOT NULL, mem TEXT NOT NULL,"
    "  threads INTEGER NOT NULL, cache TEXT NOT NULL);"
    "CREATE TABLE result ("
    "  id INTEGER PRIMARY KEY,"
    "  run INTEGER NOT NULL REFERENCES run (id),"
    "  point_id TEXT NOT NULL,"
    "  series INTEGER REFERENCES series (id)," /* NULL: the point was not ok */
    "  status TEXT NOT NULL, reason TEXT,"
    "  median_ns REAL, ci95_low_ns REAL, ci95_high_ns REAL, ci_scope TEXT, mad_ns REAL, samples INTEGER,"
    "  log_median_ns REAL, standard_error REAL," /* natural logarithm; the error is the logarithm's */
    "  roof_fraction REAL, gflops REAL, quality TEXT,"
    "  UNIQUE (run, point_id));"
    "CREATE INDEX result_by_series ON result (series);"
    "CREATE VIEW point AS"
    "  SELECT result.series, run.time_utc, run.run_id, run.build_commit, run.build_dirty,"
    "    result.log_median_ns AS value, result.standard_error, result.median_ns, result.ci95_low_ns,"
    "    result.ci95_high_ns, result.roof_fraction, result.samples, result.quality"
    "  FROM result JOIN run ON run.id = result.run"
    "  WHERE result.series IS NOT NULL;";

/* Ratios to a pinned build, measured within the same processes. Their series are their own: one for each anchor. */
static const char version_2[] =
    "ALTER TABLE series ADD COLUMN anchor TEXT NOT NULL DEFAULT '';" /* '': a series of times */
    "CREATE TABLE ratio ("
    "  id INTEGER PRIMARY KEY,"
    "  run INTEGER NOT NULL REFERENCES run (id),"
    "  series INTEGER NOT NULL REFERENCES series (id),"
    "  current TEXT,"                                 /* what was held against the anchor */
    "  log_ratio REAL NOT NULL, standard_error REAL," /* log(current / anchor), over processes */
    "  processes INTEGER, verdict TEXT,"
    "  UNIQUE (run, series));"
    "CREATE INDEX ratio_by_series ON ratio (series);"
    "DROP VIEW point;"
    "CREATE VIEW point AS"
    "  SELECT result.series, run.time_utc, run.run_id, run.build_commit, run.build_dirty,"
    "    result.log_median_ns AS value, result.standard_error, result.median_ns, result.ci95_low_ns,"
    "    result.ci95_high_ns, result.roof_fraction, NULL AS log_ratio, result.samples, result.quality, NULL AS verdict"
    "  FROM result JOIN run ON run.id = result.run"
    "  WHERE result.series IS NOT NULL"
    "  UNION ALL"
    "  SELECT ratio.series, run.time_utc, run.run_id, run.build_commit, run.build_dirty,"
    "    ratio.log_ratio, ratio.standard_error, NULL, NULL, NULL, NULL, ratio.log_ratio, ratio.processes, NULL,"
    "    ratio.verdict"
    "  FROM ratio JOIN run ON run.id = ratio.run;";

const char *const history_migrations[HISTORY_VERSION] = {version_1, version_2};
