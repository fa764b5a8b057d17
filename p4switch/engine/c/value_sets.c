/* Parser value sets. */
#include "control.h"

#include <stdlib.h>

int p4_vset_set(p4_switch *sw, uint32_t index, const p4_match *keys, size_t n_members)
{
    p4_vset *set = &sw->vsets[index];
    const p4_vset_info *info = set->info;
    uint32_t n = info->key_words, prefix;
    uint64_t *words = calloc(n_members * 2 * n + 1, sizeof *words);
    if (!words)
        return p4_fail(sw, P4_MEMORY, "%s: out of memory", info->name);
    for (size_t i = 0; i < n_members; i++) {
        int status = p4_pack_key(sw, info->name, info->keys, info->n_keys, n, keys + i * info->n_keys, info->n_keys,
                              words + i * 2 * n, words + i * 2 * n + n, &prefix);
        if (status) {
            free(words);
            return status;
        }
    }
    free(set->words);
    set->words = words;
    set->count = (uint32_t)n_members;
    return P4_OK;
}
