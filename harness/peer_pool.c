/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers kept between problems; see peer.h.
 */
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "peer.h"

static const char *text_of(const json_t *command)
{
    char *text = json_dumps(command, JSON_COMPACT);
    const char *kept = intern(text);
    free(text);
    return kept;
}

static bool is_plugin(const json_t *command)
{
    const char *second = json_string_value(json_array_get(command, 1));
    return second && strcmp(second, "--plugin") == 0;
}

int peer_pool_take(struct peer_pool *pool, const json_t *command, const struct team *team, double memory_limit,
                   struct peer *peer, struct error *error)
{
    const char *text = text_of(command);
    for (int i = 0; i < PEER_POOL; i++)
        if (pool->kept[i].command == text) {
            *peer = pool->kept[i].peer;
            pool->kept[i].command = NULL;
            peer->memory_limit = memory_limit;
            return 0;
        }
    return peer_start(command, team, memory_limit, peer, error);
}

void peer_pool_give(struct peer_pool *pool, const json_t *command, struct peer *peer)
{
    for (int i = 0; i < PEER_POOL && peer->child.pid > 0 && !is_plugin(command); i++)
        if (!pool->kept[i].command) {
            pool->kept[i].command = text_of(command);
            pool->kept[i].peer = *peer;
            *peer = (struct peer){0};
            return;
        }
    peer_end(peer);
}

void peer_pool_release(struct peer_pool *pool)
{
    for (int i = 0; i < PEER_POOL; i++)
        if (pool->kept[i].command)
            peer_end(&pool->kept[i].peer);
    *pool = (struct peer_pool){0};
}
