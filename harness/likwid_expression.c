/* SPDX-License-Identifier: Apache-2.0
 *
 * LIKWID's expressions; see likwid_expression.h for what they mean.
 */
#include "likwid_expression.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "likwid_domain.h"
#include "pu_order.h"

/* One expression under evaluation. */
struct reader {
    const struct topology *topology;
    const char *text; /* whole, for messages */
    int32_t *cpus;
    int count, part; /* entries; where the part under way begins */
    int capacity;
    bool cut;
    struct error *error;
};

/* A domain as two lists: siblings side by side, and one of each core first. */
struct domain {
    int32_t *side_by_side, *cores_first;
    int count;
};

bool likwid_is_expression(const char *text)
{
    return isdigit((unsigned char)*text) || (*text && strchr("NSDCMGEL", *text));
}

static int malformed(struct reader *reader, const char *part)
{
    return error_usage(reader->error,
                       "placement '%.200s': '%.100s' is not one of LIKWID's expressions (0,2-5, S0:0-3, E:N:4:1:2, "
                       "M:scatter; joined by @)",
                       reader->text, part);
}

static int no_memory(struct reader *reader)
{
    return error_system(reader->error, ENOMEM, "placement '%.200s'", reader->text);
}

/* Adds an entry. 0; 1: the part is full; -ENOMEM. */
static int add(struct reader *reader, int32_t cpu)
{
    if (reader->count - reader->part >= reader->topology->pu_count) {
        reader->cut = true;
        return 1;
    }
    if (reader->count == reader->capacity) {
        const int capacity = reader->capacity ? 2 * reader->capacity : 64;
        int32_t *grown = realloc(reader->cpus, (size_t)capacity * sizeof *grown);
        if (!grown)
            return no_memory(reader);
        reader->cpus = grown;
        reader->capacity = capacity;
    }
    reader->cpus[reader->count++] = cpu;
    return 0;
}

/* Reads a decimal number and moves behind it; -1: there is none, or it is too large. */
static int read_number(const char **at)
{
    int value = 0;
    if (!isdigit((unsigned char)**at))
        return -1;
    for (; isdigit((unsigned char)**at); ++*at)
        if ((value = 10 * value + (**at - '0')) > 99999999)
            return -1;
    return value;
}

/* An entry of a list: an OS index where domain is NULL, else an index into it. */
static int add_index(struct reader *reader, const struct domain *domain, const char *part, int index)
{
    const struct topology *topology = reader->topology;
    if (domain && index >= domain->count)
        return error_usage(reader->error, "placement '%.200s': '%.100s' has %d CPU%s, counted from 0: no %d",
                           reader->text, part, domain->count, domain->count == 1 ? "" : "s", index);
    if (!domain && !topology_pu(topology, index))
        return error_usage(reader->error, "placement '%.200s': CPU %d %s", reader->text, index,
                           hwloc_get_pu_obj_by_os_index(topology->hwloc, (unsigned)index)
                               ? "may not be used (affinity, cpuset or restriction)"
                               : "does not exist here");
    return add(reader, domain ? domain->cores_first[index] : index);
}

/* "0,2-5,7-6" */
static int read_list(struct reader *reader, const struct domain *domain, const char *part, const char *list)
{
    const char *at = list;
    do {
        int first = read_number(&at), last = first;
        if (first >= 0 && *at == '-') {
            at++;
            last = read_number(&at);
        }
        if (first < 0 || last < 0 || (*at && *at != ','))
            return malformed(reader, part);
        for (int index = first;; index += first <= last ? 1 : -1) {
            const int code = add_index(reader, domain, part, index);
            if (code < 0)
                return code;
            if (code > 0 || index == last)
                break;
        }
    } while (*at++ == ',');
    return 0;
}

static void domain_release(struct domain *domain)
{
    free(domain->side_by_side);
    free(domain->cores_first);
    *domain = (struct domain){0};
}

static int domain_fill(struct reader *reader, char letter, int index, bool once, struct domain *domain)
{
    const struct topology *topology = reader->topology;
    const size_t bytes = (size_t)topology->pu_count * sizeof(int32_t);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    *domain = (struct domain){.side_by_side = malloc(bytes), .cores_first = malloc(bytes)};
    if (!set || !domain->side_by_side || !domain->cores_first) {
        hwloc_bitmap_free(set);
        domain_release(domain);
        return no_memory(reader);
    }
    likwid_domain_pus(topology, letter, index, once, set);
    domain->count = order_siblings_first(topology, set, domain->side_by_side);
    order_cores_first(topology, set, domain->cores_first);
    hwloc_bitmap_free(set);
    return 0;
}

/* Reads a tag such as N or S0, up to a colon or the end; *at moves behind it. The domain must be released. */
static int read_domain(struct reader *reader, const char *part, const char **at, struct domain *domain)
{
    const char letter = **at;
    int index = 0;
    if (!likwid_is_domain(letter)) {
        if (letter == 'G')
            return error_usage(reader->error, "placement '%.200s': GPU domains are not known here", reader->text);
        return malformed(reader, part);
    }
    ++*at;
    if (letter != 'N' && (index = read_number(at)) < 0)
        return malformed(reader, part);
    if (**at && **at != ':')
        return malformed(reader, part);
    const int count = likwid_domain_count(reader->topology, letter);
    if (index >= count)
        return error_usage(reader->error, "placement '%.200s': there %s %d usable %s%s here, counted from 0",
                           reader->text, count == 1 ? "is" : "are", count, likwid_domain_name(letter),
                           count == 1 ? "" : "s");
    return domain_fill(reader, letter, index, false, domain);
}

/* "L:S0:0-3", "S0:0-3", "S0", "L:0-3" */
static int read_logical(struct reader *reader, const char *part)
{
    const bool prefixed = *part == 'L';
    const char *at = prefixed ? part + 1 : part;
    if (prefixed && *at++ != ':')
        return malformed(reader, part);
    struct domain domain = {0};
    const bool whole_machine = prefixed && isdigit((unsigned char)*at);
    int code = whole_machine ? domain_fill(reader, 'N', 0, false, &domain) : read_domain(reader, part, &at, &domain);
    if (code)
        return code;
    if (whole_machine || *at == ':')
        code = read_list(reader, &domain, part, whole_machine ? at : at + 1);
    else if (prefixed)
        code = malformed(reader, part);
    else
        for (int i = 0; i < domain.count && code == 0; i++)
            code = add(reader, domain.side_by_side[i]);
    domain_release(&domain);
    return code;
}

/* "E:N", "E:N:4", "E:N:4:1:2", "E:N:4:1:2:1" */
static int read_chunks(struct reader *reader, const char *part)
{
    int number[4] = {reader->topology->pu_count, 1, 1, 0}, given = 0, code = 0;
    const char *at = part + 1;
    struct domain domain = {0};
    if (*at++ != ':')
        return malformed(reader, part);
    if ((code = read_domain(reader, part, &at, &domain)) != 0)
        return code;
    while (*at == ':' && given < 4) {
        at++;
        if ((number[given++] = read_number(&at)) < 0)
            break;
    }
    const int wanted = number[0], chunk = number[1], stride = number[2], start = number[3];
    if (*at || given == 2 || wanted < 1 || chunk < 1 || stride < 0 || start < 0) {
        code = malformed(reader, part);
    } else if (start >= domain.count) {
        code = error_usage(reader->error, "placement '%.200s': '%.100s' begins behind the %d entries of its domain",
                           reader->text, part, domain.count);
    }
    for (int taken = 0, offset = 0; taken < wanted && code == 0;) {
        for (int j = 0; j < chunk && start + offset + j < domain.count && taken < wanted && code == 0; j++, taken++)
            code = add(reader, domain.side_by_side[start + offset + j]);
        offset = stride < domain.count - start - offset ? offset + stride : 0;
    }
    domain_release(&domain);
    return code;
}

/* Adds `wanted` of a domain. cores: cores before siblings; where there are fewer cores than threads, the first ones
 * bear all their siblings, so that as many cores as possible have one thread. */
static int add_share(struct reader *reader, const struct domain *domain, int wanted, bool cores)
{
    const struct topology *topology = reader->topology;
    const int32_t *list = cores ? domain->cores_first : domain->side_by_side;
    int first = 0, core_count = 0, code = 0;
    for (int i = 0; i < domain->count; i++)
        core_count += i == 0 || topology_pu(topology, domain->side_by_side[i])->core !=
                                    topology_pu(topology, domain->side_by_side[i - 1])->core;
    if (cores && wanted > core_count) {
        /* Full cores in front, until the rest has one thread a core. */
        int left = core_count;
        while (first < wanted && wanted - first > left) {
            const int core = topology_pu(topology, domain->side_by_side[first])->core;
            while (first < domain->count && topology_pu(topology, domain->side_by_side[first])->core == core)
                first++;
            left--;
        }
    }
    first = first < wanted ? first : wanted;
    for (int i = 0; i < first && code == 0; i++)
        code = add(reader, domain->side_by_side[i]);
    const int last_full = first > 0 ? topology_pu(topology, domain->side_by_side[first - 1])->core : -1;
    for (int i = 0, taken = first; taken < wanted && i < domain->count && code == 0; i++) {
        if (topology_pu(topology, list[i])->core <= last_full)
            continue;
        code = add(reader, list[i]);
        taken++;
    }
    return code;
}

static int take_turns(struct reader *reader, const struct domain *domains, int count, int wanted)
{
    int taken = 0, code = 0, longest = 0;
    for (int d = 0; d < count; d++)
        longest = domains[d].count > longest ? domains[d].count : longest;
    for (int turn = 0; turn < longest; turn++)
        for (int d = 0; d < count && taken < wanted && code == 0; d++)
            if (turn < domains[d].count) {
                code = add(reader, domains[d].cores_first[turn]);
                taken++;
            }
    return code;
}

enum method { SCATTER, BALANCED, CBALANCED, METHODS };
static const char *const method_names[METHODS] = {"scatter", "balanced", "cbalanced"};

static int spread(struct reader *reader, const char *part, const struct domain *domains, int count, enum method method,
                  int wanted)
{
    int total = 0, code = 0;
    for (int d = 0; d < count; d++)
        total += domains[d].count;
    if (wanted > total)
        return error_usage(reader->error, "placement '%.200s': '%.100s' has %d CPU%s, not %d", reader->text, part,
                           total, total == 1 ? "" : "s", wanted);
    if (wanted == 0)
        wanted = total;
    if (method == SCATTER)
        return take_turns(reader, domains, count, wanted);
    /* Shares as equal as can be; what is too much for a small domain goes to those behind it. */
    for (int d = 0, left = wanted, room = total; d < count && code == 0; d++) {
        int share = left / (count - d) + (left % (count - d) > 0);
        room -= domains[d].count;
        share = share > domains[d].count ? domains[d].count : share;
        share = left - share > room ? left - room : share;
        code = add_share(reader, &domains[d], share, method == CBALANCED);
        left -= share;
    }
    return code;
}

/* "S:scatter", "M:balanced:4", "S0:cbalanced:2" */
static int read_method(struct reader *reader, const char *part, enum method method)
{
    const char letter = *part, *at = part + 1;
    const bool all = *at == ':';
    const int only = all ? 0 : read_number(&at);
    if (!likwid_is_domain(letter) || only < 0 || *at++ != ':' ||
        strncmp(at, method_names[method], strlen(method_names[method])) != 0)
        return malformed(reader, part);
    at += strlen(method_names[method]);
    int wanted = 0;
    if (*at == ':') {
        at++;
        if ((wanted = read_number(&at)) < 1)
            return malformed(reader, part);
    }
    if (*at)
        return malformed(reader, part);
    const int known = likwid_domain_count(reader->topology, letter);
    if (only >= known)
        return error_usage(reader->error, "placement '%.200s': hwloc knows of %s usable %s here", reader->text,
                           known ? "no such" : "no", likwid_domain_name(letter));
    struct domain *domains = calloc((size_t)known, sizeof *domains);
    int count = 0, code = domains ? 0 : no_memory(reader);
    for (int d = all ? 0 : only; d < (all ? known : only + 1) && code == 0; d++) {
        code = domain_fill(reader, letter, d, all, &domains[count]);
        if (code == 0 && domains[count].count > 0)
            count++;
        else
            domain_release(&domains[count]);
    }
    if (code == 0)
        code = spread(reader, part, domains, count, method, wanted);
    for (int d = 0; domains && d < count; d++)
        domain_release(&domains[d]);
    free(domains);
    return code;
}

static int read_part(struct reader *reader, const char *part)
{
    /* cbalanced holds balanced, so the longest name first. */
    for (int method = METHODS - 1; method >= 0; method--)
        if (strstr(part, method_names[method]))
            return read_method(reader, part, (enum method)method);
    if (isdigit((unsigned char)*part))
        return read_list(reader, NULL, part, part);
    return *part == 'E' ? read_chunks(reader, part) : read_logical(reader, part);
}

/* Threads that share a CPU, and entries cut off, are LIKWID's meaning, but seldom what was wanted. */
static const char *warning_of(const struct reader *reader)
{
    hwloc_bitmap_t seen = hwloc_bitmap_alloc();
    int doubled = -1;
    for (int i = 0; i < reader->count && doubled < 0; i++) {
        if (hwloc_bitmap_isset(seen, (unsigned)reader->cpus[i]))
            doubled = reader->cpus[i];
        hwloc_bitmap_set(seen, (unsigned)reader->cpus[i]);
    }
    hwloc_bitmap_free(seen);
    if (doubled >= 0)
        return intern_format("placement '%.200s' puts several threads on CPU %d%s", reader->text, doubled,
                             reader->cut ? ", and was cut to as many threads as there are CPUs, as LIKWID does" : "");
    return reader->cut
               ? intern_format("placement '%.200s' was cut to as many threads as there are CPUs, as LIKWID does",
                               reader->text)
               : NULL;
}

int likwid_resolve(const struct topology *topology, const char *text, int32_t **cpus, const char **warning,
                   struct error *error)
{
    struct reader reader = {.topology = topology, .text = text, .error = error};
    char *copy = strdup(text), *part = copy;
    int code = copy ? 0 : no_memory(&reader);
    *cpus = NULL;
    *warning = NULL;
    while (part && code >= 0) {
        char *next = strchr(part, '@');
        if (next)
            *next++ = 0;
        reader.part = reader.count;
        code = read_part(&reader, part);
        part = next;
    }
    free(copy);
    if (code < 0) {
        free(reader.cpus);
        return code;
    }
    *warning = warning_of(&reader);
    *cpus = reader.cpus;
    return reader.count;
}
