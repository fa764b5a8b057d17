/* Members and groups of action profiles. */
#include "control.h"

#include <stdlib.h>

int p4_member_add(p4_switch *sw, uint32_t index, const p4_aim *aim, uint32_t *handle)
{
    p4_profile *profile = &sw->profiles[index];
    const p4_profile_info *info = profile->info;
    uint32_t action, at = 0;
    int status = p4_action_of(sw, info->name, info->actions, info->n_actions, aim, &action);
    if (status)
        return status;
    while (at < profile->n_members && p4_member_valid(profile, at))
        at++;
    if (info->max_size && at >= info->max_size)
        return p4_fail(sw, P4_FULL, "%s is full (%u members)", info->name, info->max_size);
    if (at == profile->n_members) {
        uint32_t n = at ? 2 * at : 8;
        uint8_t *members = p4_allocate_lines((size_t)n * info->stride);
        if (!members)
            return p4_fail(sw, P4_MEMORY, "%s: out of memory", info->name);
        if (at)
            memcpy(members, profile->members, (size_t)at * info->stride);
        free(profile->members);
        profile->members = members;
        for (uint32_t i = at; i < n; i++)
            p4_member_at(profile, i, info->stride)->action = P4_NO_ACTION;
        profile->n_members = n;
    }
    p4_member *m = p4_member_at(profile, at, info->stride);
    memset(m, 0, info->stride);
    m->action = action;
    p4_store_args(sw, m->data, action, aim->args);
    *handle = at;
    return P4_OK;
}

int p4_member_modify(p4_switch *sw, uint32_t index, uint32_t handle, const p4_aim *aim)
{
    p4_profile *profile = &sw->profiles[index];
    uint32_t action;
    if (!p4_member_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no member %u", profile->info->name, handle);
    int status = p4_action_of(sw, profile->info->name, profile->info->actions, profile->info->n_actions, aim, &action);
    if (status)
        return status;
    p4_member *m = p4_member_at(profile, handle, profile->info->stride);
    m->action = action;
    p4_store_args(sw, m->data, action, aim->args);
    return P4_OK;
}

int p4_member_delete(p4_switch *sw, uint32_t index, uint32_t handle)
{
    p4_profile *profile = &sw->profiles[index];
    if (!p4_member_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no member %u", profile->info->name, handle);
    p4_member *m = p4_member_at(profile, handle, profile->info->stride);
    if (m->references)
        return p4_fail(sw, P4_INVALID, "%s: member %u is in use", profile->info->name, handle);
    m->action = P4_NO_ACTION;
    return P4_OK;
}

int p4_group_add(p4_switch *sw, uint32_t index, uint32_t *handle)
{
    p4_profile *profile = &sw->profiles[index];
    uint32_t at = 0;
    if (!profile->info->with_selector)
        return p4_fail(sw, P4_INVALID, "%s has no selector, so it has no groups", profile->info->name);
    while (at < profile->n_groups && profile->groups[at].used)
        at++;
    if (at == profile->n_groups) {
        uint32_t n = at ? 2 * at : 8;
        p4_members *groups = p4_allocate_lines(n * sizeof *groups);
        if (!groups)
            return p4_fail(sw, P4_MEMORY, "%s: out of memory", profile->info->name);
        if (at)
            memcpy(groups, profile->groups, at * sizeof *groups);
        memset(groups + at, 0, (n - at) * sizeof *groups);
        free(profile->groups);
        profile->groups = groups;
        profile->n_groups = n;
    }
    profile->groups[at].used = 1;
    *handle = at;
    return P4_OK;
}

static int by_handle(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static const uint32_t *members_of(const p4_members *group)
{
    return group->count <= P4_FEW ? group->few : group->many;
}

static void members_count(p4_profile *profile, const p4_members *group, int by)
{
    for (uint32_t i = 0; i < group->count; i++)
        p4_member_at(profile, members_of(group)[i], profile->info->stride)->references += (uint32_t)by;
}

/* BMv2 numbers the members of a group by ascending handle; so the hash picks the same member here. */
int p4_group_set(p4_switch *sw, uint32_t index, uint32_t handle, const uint32_t *members, size_t count)
{
    p4_profile *profile = &sw->profiles[index];
    if (!p4_group_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no group %u", profile->info->name, handle);
    if (count > UINT16_MAX)
        return p4_fail(sw, P4_FULL, "%s: a group has at most %u members", profile->info->name, UINT16_MAX);
    for (size_t i = 0; i < count; i++)
        if (!p4_member_valid(profile, members[i]))
            return p4_fail(sw, P4_INVALID, "%s: no member %u", profile->info->name, members[i]);
    p4_members *group = &profile->groups[handle];
    uint32_t *many = NULL;
    if (count > P4_FEW && !(many = malloc(count * sizeof *many)))
        return p4_fail(sw, P4_MEMORY, "%s: out of memory", profile->info->name);
    members_count(profile, group, -1);
    free(group->many);
    group->many = many;
    group->count = (uint32_t)count;
    uint32_t *list = many ? many : group->few;
    if (count)
        memcpy(list, members, count * sizeof *list);
    qsort(list, count, sizeof *list, by_handle);
    members_count(profile, group, 1);
    return P4_OK;
}

int p4_group_delete(p4_switch *sw, uint32_t index, uint32_t handle)
{
    p4_profile *profile = &sw->profiles[index];
    if (!p4_group_valid(profile, handle))
        return p4_fail(sw, P4_INVALID, "%s: no group %u", profile->info->name, handle);
    p4_members *group = &profile->groups[handle];
    if (group->references)
        return p4_fail(sw, P4_INVALID, "%s: group %u is in use", profile->info->name, handle);
    members_count(profile, group, -1);
    free(group->many);
    memset(group, 0, sizeof *group);
    return P4_OK;
}

void p4_profile_destroy(p4_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_groups; i++)
        free(profile->groups[i].many);
    free(profile->groups);
    free(profile->members);
    profile->groups = NULL;
    profile->members = NULL;
    profile->n_groups = profile->n_members = 0;
}
