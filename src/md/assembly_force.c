/* SPDX-License-Identifier: MIT */
/*
 * --force on levels with redundancy (specification 8.2): as long as the array lacks members, the
 * newest of those that were left out for their history comes back, with all of its vintage: they
 * left at the same moment and are consistent with each other. A newer one of a slot goes before an
 * older one, which then finds its slot taken. Nothing is written here: what has to
 * be changed in superblocks is listed.
 */
#include <errno.h>

#include "geometry/available.h"
#include "md/assembly_verdict.h"

static int change(struct assembling *a, const struct md_assembly_change *change)
{
	if (a->ret->change_count == MD_ASSEMBLY_CHANGES_MAX)
		return fault_set(a->fault, -E2BIG,
			"force would have to change superblocks in more than %u places; use mdadm "
			"for an array of that many members",
			MD_ASSEMBLY_CHANGES_MAX);
	a->ret->changes[a->ret->change_count++] = *change;
	return 0;
}

static bool is_member(const struct assembling *a, const struct verdict *verdict)
{
	return verdict->accepted && verdict->role < a->ret->slot_count;
}

bool assembly_available(const struct assembling *a, const struct verdict *verdicts)
{
	bool in_sync[GEOMETRY_SLOTS_MAX] = {false};

	for (unsigned i = 0; i < a->count; i++)
		if (verdicts[i].accepted && verdicts[i].role < a->ret->slot_count)
			in_sync[verdicts[i].role] |= verdicts[i].in_sync;
	return geometry_available(a->ret->level, a->ret->layout, a->ret->slot_count, in_sync);
}

/* Nobody else is in its slot or has its number. */
static bool can_return(const struct assembling *a, const struct verdict *verdicts, unsigned index)
{
	if (verdicts[index].accepted || !verdicts[index].forcible)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (verdicts[i].accepted && (verdicts[i].role == verdicts[index].role ||
						    a->candidates[i].super->dev_number ==
							    a->candidates[index].super->dev_number))
			return false;
	return true;
}

/* A half that may have been written alone comes last, however many events it counted. */
static bool is_better(
	const struct assembling *a, const struct verdict *verdicts, unsigned one, unsigned two)
{
	const bool split_one = verdicts[one].reason == MD_REJECTED_SPLIT_BRAIN;
	const bool split_two = verdicts[two].reason == MD_REJECTED_SPLIT_BRAIN;

	if (split_one != split_two)
		return split_two;
	return a->candidates[one].super->events > a->candidates[two].super->events;
}

/* The one to return next; -1 for none. */
static int find_newest(const struct assembling *a, const struct verdict *verdicts)
{
	int newest = -1;

	for (unsigned i = 0; i < a->count; i++)
		if (can_return(a, verdicts, i) &&
			(newest < 0 || is_better(a, verdicts, i, (unsigned)newest)))
			newest = (int)i;
	return newest;
}

static void take_vintage(struct assembling *a, struct verdict *verdicts, unsigned newest)
{
	const uint64_t vintage = a->candidates[newest].super->events;

	verdicts[newest].accepted = verdicts[newest].forced = true;
	for (unsigned i = 0; i < a->count; i++)
		if (a->candidates[i].super->events == vintage &&
			verdicts[i].reason != MD_REJECTED_SPLIT_BRAIN && can_return(a, verdicts, i))
			verdicts[i].accepted = verdicts[i].forced = true;
}

/* What @holder's superblock says of the member @index becomes true again. */
static int change_role(
	struct assembling *a, const struct verdict *verdicts, unsigned holder, unsigned index)
{
	const struct md_super *super = a->candidates[holder].super;
	const unsigned number = a->candidates[index].super->dev_number;
	const unsigned old = number < super->role_count ? super->roles[number] : MD_ROLE_SPARE;

	if (old == verdicts[index].role)
		return 0;
	return change(a, &(struct md_assembly_change){
				 .candidate = holder,
				 .what = MD_CHANGE_ROLE,
				 .dev_number = number,
				 .value = verdicts[index].role,
				 .old = old,
			 });
}

/*
 * mdadm changes the freshest superblock alone, and a start that then changes nothing leaves members
 * that call each other failed, with equal events. So all of them are changed here; and the events,
 * by which the returned one becomes fresh, last: cut short anywhere it can be forced again.
 */
static int change_roles(struct assembling *a, const struct verdict *verdicts)
{
	int result = 0;

	for (unsigned i = 0; i < a->count; i++)
		for (unsigned j = 0; result == 0 && j < a->count; j++)
			if (is_member(a, &verdicts[i]) && is_member(a, &verdicts[j]) &&
				(verdicts[i].forced || verdicts[j].forced))
				result = change_role(a, verdicts, i, j);
	return result;
}

static int change_events(struct assembling *a, const struct verdict *verdicts)
{
	int result = 0;

	for (unsigned i = 0; result == 0 && i < a->count; i++)
		if (verdicts[i].forced && a->candidates[i].super->events != a->best->super->events)
			result = change(a, &(struct md_assembly_change){
						   .candidate = i,
						   .what = MD_CHANGE_EVENTS,
						   .value = a->best->super->events,
						   .old = a->candidates[i].super->events,
					   });
	return result;
}

int assembly_force(struct assembling *a, struct verdict *verdicts)
{
	int result;

	while (!assembly_available(a, verdicts)) {
		const int newest = find_newest(a, verdicts);

		if (newest < 0)
			break;
		take_vintage(a, verdicts, (unsigned)newest);
	}
	result = change_roles(a, verdicts);
	return result == 0 ? change_events(a, verdicts) : result;
}

/* Where writes were in flight, what was rebuilt may not fit the others any more. */
static int change_recovery(struct assembling *a, const struct verdict *verdicts)
{
	int result = 0;

	for (unsigned i = 0; result == 0 && i < a->count; i++)
		if (is_member(a, &verdicts[i]) && verdicts[i].recovered_sectors > 0)
			result = change(a, &(struct md_assembly_change){
						   .candidate = i,
						   .what = MD_CHANGE_RECOVERY,
						   .old = verdicts[i].recovered_sectors,
					   });
	for (unsigned i = 0; i < a->ret->device_count; i++)
		a->ret->devices[i].recovery_offset_bytes = 0;
	return result;
}

int assembly_force_clean(struct assembling *a, const struct verdict *verdicts)
{
	int result = change_recovery(a, verdicts);

	for (unsigned i = 0; result == 0 && i < a->count; i++)
		if (is_member(a, &verdicts[i]) && a->candidates[i].super->resync_offset != MD_CLEAN)
			result = change(a, &(struct md_assembly_change){
						   .candidate = i,
						   .what = MD_CHANGE_CLEAN,
						   .value = MD_CLEAN,
						   .old = a->candidates[i].super->resync_offset,
					   });
	return result;
}
