/* SPDX-License-Identifier: MIT */
/*
 * --force on levels with redundancy (specification 8.2): as long as the array lacks members, the
 * newest of those that were left out for their history comes back, with all of its vintage: they
 * left at the same moment and are consistent with each other. Nothing is written here: what has to
 * be changed in superblocks is listed.
 */
#include "geometry/available.h"
#include "md/assembly_verdict.h"

static void change(
	struct assembling *a, unsigned candidate, enum md_change what, uint64_t value, uint64_t old)
{
	a->ret->changes[a->ret->change_count++] = (struct md_assembly_change){
		.candidate = candidate,
		.what = what,
		.value = value,
		.old = old,
	};
}

bool assembly_available(const struct assembling *a, const struct verdict *verdicts)
{
	bool in_sync[GEOMETRY_SLOTS_MAX] = {false};

	for (unsigned i = 0; i < a->count; i++)
		if (verdicts[i].accepted && verdicts[i].role < a->ret->slot_count)
			in_sync[verdicts[i].role] |= verdicts[i].in_sync;
	return geometry_available(a->ret->level, a->ret->layout, a->ret->slot_count, in_sync);
}

/* Nobody else is in its slot or has its number, and no newer one waits for that slot. */
static bool can_return(const struct assembling *a, const struct verdict *verdicts, unsigned index)
{
	const struct md_super *super = a->candidates[index].super;

	if (verdicts[index].accepted || !verdicts[index].forcible)
		return false;
	for (unsigned i = 0; i < a->count; i++) {
		const struct md_super *other = a->candidates[i].super;

		if (verdicts[i].accepted && (verdicts[i].role == verdicts[index].role ||
						    other->dev_number == super->dev_number))
			return false;
		if (verdicts[i].forcible && verdicts[i].role == verdicts[index].role &&
			other->events > super->events)
			return false;
	}
	return true;
}

/* The newest that can return; -1 for none. */
static int find_newest(const struct assembling *a, const struct verdict *verdicts)
{
	int newest = -1;

	for (unsigned i = 0; i < a->count; i++)
		if (can_return(a, verdicts, i) &&
			(newest < 0 || a->candidates[i].super->events >
					       a->candidates[newest].super->events))
			newest = (int)i;
	return newest;
}

static void take(struct assembling *a, struct verdict *verdicts, unsigned index)
{
	const struct md_super *super = a->candidates[index].super;

	verdicts[index].accepted = true;
	if (super->events != a->best->super->events)
		change(a, index, MD_CHANGE_EVENTS, a->best->super->events, super->events);
}

/* The one superblock in which facts of the whole array are changed. */
static unsigned find_speaker(const struct assembling *a, const struct verdict *verdicts)
{
	unsigned speaker = a->ret->freshest;

	for (unsigned i = 0; i < a->count; i++) {
		if (!verdicts[i].accepted || verdicts[i].role >= a->ret->slot_count)
			continue;
		if (!verdicts[speaker].accepted ||
			a->candidates[i].super->events > a->candidates[speaker].super->events)
			speaker = i;
	}
	return speaker;
}

/* The returned ones have their slots again in the superblock that speaks for the array. */
static void change_roles(struct assembling *a, const struct verdict *verdicts)
{
	const unsigned speaker = find_speaker(a, verdicts);
	const struct md_super *super = a->candidates[speaker].super;

	for (unsigned i = 0; i < a->count; i++) {
		const uint32_t number = a->candidates[i].super->dev_number;

		if (!verdicts[i].accepted || !verdicts[i].forcible ||
			super->roles[number] == verdicts[i].role)
			continue;
		change(a, speaker, MD_CHANGE_ROLE, verdicts[i].role, super->roles[number]);
		a->ret->changes[a->ret->change_count - 1].dev_number = number;
	}
}

void assembly_force(struct assembling *a, struct verdict *verdicts)
{
	while (!assembly_available(a, verdicts)) {
		const int newest = find_newest(a, verdicts);
		uint64_t vintage;

		if (newest < 0)
			break;
		vintage = a->candidates[newest].super->events;
		take(a, verdicts, (unsigned)newest);
		for (unsigned i = 0; i < a->count; i++)
			if (a->candidates[i].super->events == vintage &&
				verdicts[i].reason != MD_REJECTED_SPLIT_BRAIN &&
				can_return(a, verdicts, i))
				take(a, verdicts, i);
	}
	change_roles(a, verdicts);
}

void assembly_force_clean(struct assembling *a, const struct verdict *verdicts)
{
	const unsigned speaker = find_speaker(a, verdicts);

	change(a, speaker, MD_CHANGE_CLEAN, MD_CLEAN, a->candidates[speaker].super->resync_offset);
}
