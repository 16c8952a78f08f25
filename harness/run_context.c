/* SPDX-License-Identifier: Apache-2.0
 *
 * Making the context of a run; see run_context.h.
 */
#include "run_context.h"

#include <sys/random.h>
#include <time.h>

#include "clock.h"
#include "environment.h"
#include "intern.h"

json_t *run_context(int argc, char **argv, const char *config, uint64_t seed, const struct topology *topology)
{
    time_t now = time(NULL);
    struct tm utc;
    char stamp[32], compact[32];
    uint32_t noise = 0;
    if (getrandom(&noise, sizeof noise, 0) < 0)
        noise = (uint32_t)clock_ns();
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    strftime(compact, sizeof compact, "%Y%m%dT%H%M%SZ", &utc);
    json_t *command = json_array();
    json_array_append_new(command, json_string("attnbench"));
    for (int a = 0; a < argc; a++)
        json_array_append_new(command, json_string(argv[a]));
    json_t *context = json_pack("{s:s,s:s,s:s,s:o,s:o,s:I}", "schema", "attnbench.context/1", "run_id",
                                intern_format("%s-%08x", compact, noise), "time_utc", stamp, "command", command,
                                "config", config ? json_string(config) : json_null(), "seed", (json_int_t)seed);
    json_t *machine = environment_context(topology);
    json_object_update(context, machine);
    json_decref(machine);
    return context;
}
