#include <stdio.h>
#include "cache.h"

#define MAX_ENTRIES 16

typedef struct entry {
    int key;
} entry_t;

enum color { RED, GREEN };

static int hash_key(const char *key) { return key[0]; }

/* Puts an entry. */
int cache_put(cache_t *cache, entry_t *entry) {
    int at = hash_key(entry->name);
    cache->ops->insert(cache, at);
    return at % MAX_ENTRIES;
}
