/* SPDX-License-Identifier: MIT */
/*
 * Assembly of RAID 1, 4, 5, 6 and 10 (specification 8.1 and 8.2): the kernel's rules on who takes
 * part and mdadm's on whether to start, where they differ the stricter one. The freshest member
 * speaks for the array. First each candidate is judged by itself, then duplicates are thinned out,
 * then force may take stale ones in; what is left must do for the level, must be consistent, and
 * must be all that the freshest knows.
 *
 * One rule is stricter than both: what the freshest reports as failed, or what reports the freshest
 * as failed, does not become a member that is in sync merely because --force was said; only if the
 * array cannot start without it. Otherwise a mirror whose halves were both written would come up
 * with both, and reads would return either.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "geometry/available.h"
#include "md/assembly_internal.h"
#include "md/assembly_verdict.h"
#include "util/cleanup.h"
#include "util/rounding.h"

/* Of a partly missing table the missing part is unused. */
static unsigned role_by_number(const struct md_super *super, uint32_t dev_number)
{
	return dev_number < super->role_count && dev_number < MD_ROLES_MAX
		       ? super->roles[dev_number]
		       : MD_ROLE_SPARE;
}

/*
 * Who is as fresh as the freshest and in sync, by slot; -1 for nobody. What a member says of one of
 * these tells whether it was written without them. Those being rebuilt do not count: one that
 * missed just the update which gave them their slot need not know of them.
 */
static void find_fresh(const struct assembling *a, int fresh[GEOMETRY_SLOTS_MAX])
{
	for (unsigned slot = 0; slot < GEOMETRY_SLOTS_MAX; slot++)
		fresh[slot] = -1;
	for (unsigned i = 0; i < a->count; i++) {
		const struct md_super *super = a->candidates[i].super;
		const unsigned role = assembly_role(&a->candidates[i]);

		if (role < a->ret->slot_count && super->events == a->best->super->events &&
			(super->feature_map & MD_FEATURE_RECOVERY_OFFSET) == 0)
			fresh[role] = (int)i;
	}
}

/* The first of the fresh whose slot is vacant in @super; -1 if it knows all. */
static int find_unknown(const struct assembling *a, const struct md_super *super,
	const int fresh[GEOMETRY_SLOTS_MAX])
{
	bool known[GEOMETRY_SLOTS_MAX] = {false};

	for (unsigned i = 0; i < super->role_count && i < MD_ROLES_MAX; i++)
		if (super->roles[i] < a->ret->slot_count)
			known[super->roles[i]] = true;
	for (unsigned slot = 0; slot < a->ret->slot_count; slot++)
		if (fresh[slot] >= 0 && !known[slot])
			return fresh[slot];
	return -1;
}

/* A skew of one is an update that was cut short, and counts as fresh (8.1). */
static bool is_stale(const struct assembling *a, const struct md_candidate *candidate)
{
	const uint64_t best = a->best->super->events;

	return best > 0 && candidate->super->events < best - 1;
}

static bool fits(const struct assembling *a, const struct md_candidate *candidate)
{
	return assembly_extent_fits(candidate) &&
	       assembly_usable_sectors(candidate->super) >= a->best->super->size_sectors;
}

static void reject(struct verdict *verdict, enum md_rejection reason, unsigned by)
{
	verdict->accepted = false;
	verdict->reason = reason;
	verdict->by = by;
}

/* Each was run without the other, and nothing tells which one counts. */
static int refuse_split(
	const struct assembling *a, const struct md_candidate *one, const struct md_candidate *two)
{
	return fault_set(a->fault, -EUCLEAN,
		"%s and %s have the same event count %" PRIu64 ", and %s reports %s as failed: "
		"each may have been written without the other; look at both with --examine and "
		"name only the devices whose data are to be kept",
		one->path, two->path, one->super->events, one->path, two->path);
}

/*
 * By events, and by what it and the freshest say of each other. Equal events make equal tables, as
 * one update writes both; if they differ, there were two histories.
 */
static int judge_history(const struct assembling *a, const struct md_candidate *candidate,
	const int *fresh, struct verdict *verdict)
{
	const int unknown = find_unknown(a, candidate->super, fresh);
	const bool tie = candidate->super->events == a->best->super->events;
	const unsigned role = role_by_number(a->best->super, candidate->super->dev_number);

	if (unknown >= 0 && tie)
		return refuse_split(a, candidate, &a->candidates[unknown]);
	if (unknown >= 0)
		reject(verdict, MD_REJECTED_SPLIT_BRAIN, (unsigned)unknown);
	else if (is_stale(a, candidate))
		reject(verdict, MD_REJECTED_STALE, a->ret->freshest);
	else if (role != verdict->role && tie)
		return refuse_split(a, a->best, candidate);
	else if (role != verdict->role)
		reject(verdict, MD_REJECTED_FAILED, a->ret->freshest);
	verdict->forcible = !verdict->accepted && verdict->in_sync && !verdict->replacement;
	return 0;
}

static int judge_member(const struct assembling *a, const struct md_candidate *candidate,
	const int *fresh, struct verdict *verdict)
{
	const struct md_super *super = candidate->super;

	if (verdict->role >= a->ret->slot_count) {
		if (!is_stale(a, candidate))
			return assembly_refuse_slot(a, candidate);
		reject(verdict, MD_REJECTED_CONTRADICTS, a->ret->freshest);
		return 0;
	}
	verdict->accepted = true;
	verdict->in_sync = (super->feature_map & MD_FEATURE_RECOVERY_OFFSET) == 0;
	verdict->replacement = (super->feature_map & MD_FEATURE_REPLACEMENT) != 0;
	if (!verdict->in_sync && super->recovery_offset <= a->best->super->size_sectors)
		verdict->recovered_sectors = super->recovery_offset;
	if (!fits(a, candidate)) {
		reject(verdict, MD_REJECTED_TOO_SMALL, a->ret->freshest);
		return 0;
	}
	return candidate == a->best ? 0 : judge_history(a, candidate, fresh, verdict);
}

/*
 * A spare holds no data, so its events matter little (8.1). Two things do: one with more events
 * than an update cut short explains was spare to members that are not here; and one that missed
 * just the last update may have been given a slot by it, or been found faulty. The kernel would
 * then take it for in sync, because its own superblock has no checkpoint yet; here it begins at 0.
 * Version 0.90 renumbers its spares with every update, so there a number tells nothing.
 */
static void judge_spare(
	const struct assembling *a, const struct md_candidate *candidate, struct verdict *verdict)
{
	const struct md_super *super = candidate->super, *best = a->best->super;
	unsigned role;

	verdict->accepted = true;
	if (!fits(a, candidate)) {
		reject(verdict, MD_REJECTED_TOO_SMALL, a->ret->freshest);
		return;
	}
	if (super->events > best->events && super->events - best->events > 1) {
		reject(verdict, MD_REJECTED_STRAY_SPARE, a->ret->freshest);
		return;
	}
	if (super->version == MD_VERSION_0_90 || super->events >= best->events ||
		is_stale(a, candidate))
		return;
	role = role_by_number(best, super->dev_number);
	if (role == MD_ROLE_FAULTY) {
		reject(verdict, MD_REJECTED_FAILED, a->ret->freshest);
	} else if (role < a->ret->slot_count) {
		verdict->role = role;
		verdict->from_spare = true;
	}
}

static int judge(struct assembling *a, const int *fresh, struct verdict *verdicts, unsigned index)
{
	const struct md_candidate *candidate = &a->candidates[index];
	struct verdict *verdict = &verdicts[index];

	verdict->role = assembly_role(candidate);
	if (verdict->role > MD_ROLE_SLOT_MAX && verdict->role != MD_ROLE_SPARE) {
		reject(verdict, MD_REJECTED_ROLE, index);
		return 0;
	}
	if (!assembly_same_geometry(a, candidate)) {
		if (verdict->role != MD_ROLE_SPARE && !is_stale(a, candidate))
			return assembly_refuse_geometry(a, candidate);
		reject(verdict, MD_REJECTED_CONTRADICTS, a->ret->freshest);
		return 0;
	}
	if (verdict->role != MD_ROLE_SPARE)
		return judge_member(a, candidate, fresh, verdict);
	judge_spare(a, candidate, verdict);
	return 0;
}

static bool has_slot(const struct verdict *verdict)
{
	return verdict->role <= MD_ROLE_SLOT_MAX;
}

/* The same place in the array, or (1.x) the same number in its table of roles. */
static bool collide(
	const struct assembling *a, const struct verdict *verdicts, unsigned i, unsigned j)
{
	const struct verdict *x = &verdicts[i], *y = &verdicts[j];

	if (has_slot(x) && has_slot(y) && x->role == y->role && x->replacement == y->replacement)
		return true;
	return a->best->super->version != MD_VERSION_0_90 &&
	       a->candidates[i].super->dev_number == a->candidates[j].super->dev_number;
}

/* Of two that were accepted for one place the newer stays; a spare never takes a member's. */
static int settle(struct assembling *a, struct verdict *verdicts, unsigned i, unsigned j)
{
	const struct md_candidate *one = &a->candidates[i], *two = &a->candidates[j];
	struct verdict *x = &verdicts[i], *y = &verdicts[j];
	const bool x_member = has_slot(x) && !x->from_spare,
		   y_member = has_slot(y) && !y->from_spare;

	if (x->from_spare != y->from_spare && has_slot(x) && has_slot(y) &&
		one->super->dev_number != two->super->dev_number) {
		/* On its way to replace the other; it begins again as a spare. */
		*(x->from_spare ? x : y) = (struct verdict){
			.accepted = true,
			.role = MD_ROLE_SPARE,
		};
		return 0;
	}
	if (x_member && y_member && one->super->events == two->super->events)
		return assembly_refuse_double(a, one, two);
	if (x_member != y_member ? x_member : one->super->events >= two->super->events)
		reject(y, MD_REJECTED_DUPLICATE, i);
	else
		reject(x, MD_REJECTED_DUPLICATE, j);
	return 0;
}

static int thin_out(struct assembling *a, struct verdict *verdicts)
{
	int result = 0;

	for (unsigned i = 0; result == 0 && i < a->count; i++)
		for (unsigned j = i + 1; result == 0 && j < a->count && verdicts[i].accepted; j++)
			if (verdicts[j].accepted && collide(a, verdicts, i, j))
				result = settle(a, verdicts, i, j);
	return result;
}

/* The size is to make sense before members are measured by it. */
static int check_size(struct assembling *a)
{
	const struct md_super *s = a->best->super;
	uint64_t array_bytes;
	int result;

	if (s->size_sectors == 0 ||
		mul_overflows(s->size_sectors, MD_SECTOR, &a->ret->component_bytes))
		return fault_set(a->fault, -EUCLEAN,
			"%s: superblock claims level %s with members of %" PRIu64
			" sectors, which makes no array; the superblock is damaged, compare it "
			"with the others by --examine",
			a->best->path, md_level_name(s->level), s->size_sectors);
	result = geometry_component_array_bytes(s->level, s->layout, a->ret->chunk_bytes,
		s->raid_disks, a->ret->component_bytes, &array_bytes, a->fault);
	if (result == 0)
		return 0;
	if (result == -EINVAL)
		result = -EUCLEAN; /* what is bad input elsewhere is a bad superblock here */
	if (a->fault != NULL) {
		a->fault->error = result;
		(void)fault_prefix(a->fault,
			"%s: the array of level %s that its superblock describes: ", a->best->path,
			md_level_name(s->level));
		(void)fault_append(
			a->fault, "; compare it with the others ('strake examine FILE…')");
	}
	return result;
}

/* Features of the array that cannot run yet; a later version may lift each one. */
static int check_features(const struct assembling *a)
{
	const uint32_t features = a->best->super->feature_map;
	const char *what = NULL;

	if ((features & MD_FEATURE_JOURNAL) != 0)
		what = "a write journal (the newest data may be only there)";
	else if ((features & MD_FEATURE_CLUSTERED) != 0)
		what = "a clustered bitmap (other hosts may be writing)";
	else if ((features & (MD_FEATURE_PPL | MD_FEATURE_MULTIPLE_PPL)) != 0 &&
		 !a->options->readonly)
		what = "writing with a partial parity log (reading works: --readonly)";
	if (what == NULL)
		return 0;
	return fault_set(a->fault, -EOPNOTSUPP,
		"not yet supported: %s (recorded on %s); use mdadm and the kernel for this array",
		what, a->best->path);
}

int assembly_redundant(struct assembling *a)
{
	_cleanup_free_ struct verdict *verdicts = calloc(a->count, sizeof(*verdicts));
	int fresh[GEOMETRY_SLOTS_MAX];
	int result;

	if (verdicts == NULL)
		return fault_set(a->fault, -ENOMEM, "out of memory for %u devices", a->count);
	result = check_features(a);
	if (result == 0)
		result = check_size(a);
	find_fresh(a, fresh);
	for (unsigned i = 0; result == 0 && i < a->count; i++)
		result = judge(a, fresh, verdicts, i);
	if (result == 0)
		result = thin_out(a, verdicts);
	return result == 0 ? assembly_start(a, verdicts) : result;
}
