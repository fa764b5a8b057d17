/* Targets of entries: an action with its arguments, or a member or group of an action profile. */
#include "control.h"

int p4_action_of(p4_switch *sw, const char *where, const uint32_t *allowed, uint32_t n, const p4_aim *aim,
                 uint32_t *action)
{
    for (uint32_t i = 0; i < n; i++) {
        const p4_action_info *info = &sw->program->actions[allowed[i]];
        if (strcmp(info->name, aim->action))
            continue;
        if (aim->n_args != info->n_params)
            return p4_fail(sw, P4_INVALID, "%s: action %s takes %u arguments, got %zu", where, info->name,
                           info->n_params, aim->n_args);
        for (uint32_t p = 0; p < info->n_params; p++) {
            int status = p4_check_value(sw, info->name, info->params[p].name, info->params[p].width, aim->args[p]);
            if (status)
                return status;
        }
        *action = allowed[i];
        return P4_OK;
    }
    return p4_fail(sw, P4_INVALID, "%s: no action %s there", where, aim->action);
}

void p4_store_args(p4_switch *sw, uint8_t *data, uint32_t action, const p4_bytes *args)
{
    const p4_action_info *info = &sw->program->actions[action];
    for (uint32_t p = 0; p < info->n_params; p++)
        p4_store(data + info->params[p].offset, info->params[p].width, args[p].data);
}

int p4_member_valid(const p4_profile *profile, uint32_t handle)
{
    return handle < profile->n_members && p4_member_at(profile, handle, profile->info->stride)->action != P4_NO_ACTION;
}

int p4_group_valid(const p4_profile *profile, uint32_t handle)
{
    return handle < profile->n_groups && profile->groups[handle].used;
}

int p4_check_aim(p4_switch *sw, const p4_table_info *info, const p4_aim *aim, uint32_t *action)
{
    if (info->profile < 0) {
        if (aim->kind != P4_TO_ACTION)
            return p4_fail(sw, P4_INVALID, "table %s: has no action profile; expected an action", info->name);
        return p4_action_of(sw, info->name, info->actions, info->n_actions, aim, action);
    }
    const p4_profile *profile = &sw->profiles[info->profile];
    *action = 0;
    if (aim->kind == P4_TO_ACTION)
        return p4_fail(sw, P4_INVALID, "table %s: expected a member or group of %s", info->name, profile->info->name);
    if (aim->kind == P4_TO_GROUP && !profile->info->with_selector)
        return p4_fail(sw, P4_INVALID, "%s has no selector: expected a member", profile->info->name);
    if (aim->kind == P4_TO_MEMBER ? !p4_member_valid(profile, aim->index) : !p4_group_valid(profile, aim->index))
        return p4_fail(sw, P4_INVALID, "%s: no %s %u", profile->info->name,
                       aim->kind == P4_TO_MEMBER ? "member" : "group", aim->index);
    return P4_OK;
}

static uint8_t *entry_data(const p4_table_info *info, p4_entry *e) { return (uint8_t *)e + info->data_offset; }

void p4_target_count(p4_switch *sw, const p4_table_info *info, const p4_target *target, int by)
{
    p4_profile *profile = &sw->profiles[info->profile];
    if (target->group)
        profile->groups[target->index].references += (uint32_t)by;
    else
        p4_member_at(profile, target->index, profile->info->stride)->references += (uint32_t)by;
}

void p4_apply_aim(p4_switch *sw, const p4_table_info *info, p4_entry *e, const p4_aim *aim, uint32_t action)
{
    e->action = (uint16_t)action;
    if (info->profile < 0) {
        p4_store_args(sw, entry_data(info, e), action, aim->args);
    } else {
        p4_target target = {aim->kind == P4_TO_GROUP, aim->index};
        memcpy(entry_data(info, e), &target, sizeof target);
        p4_target_count(sw, info, &target, 1);
    }
}

void p4_release_aim(p4_switch *sw, const p4_table_info *info, p4_entry *e)
{
    if (info->profile >= 0) {
        p4_target target;
        memcpy(&target, entry_data(info, e), sizeof target);
        p4_target_count(sw, info, &target, -1);
    }
}
