/* SPDX-License-Identifier: MIT */
/*
 * A device joins. Everything that can refuse it is looked at before a byte of it is written: what
 * lives on it, its size, the state of the array.
 *
 * mdadm's rules: a device that was a member (its superblock says so) is taken back into its slot if
 * what it missed is known, so that only that is copied; else, but for re-add, it is added anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "control/detail.h"
#include "control/manage_internal.h"
#include "md/plan.h"
#include "probe/probe.h"
#include "util/cleanup.h"

struct adding {
	const struct manage *manage;
	const struct manage_facts *facts;
	struct fault *fault;
	const char *path;
	bool force, re_add_only, never_re_add, write_mostly, failfast;
	struct member *member;
	struct md_super *super; /* as found, later as planned */
	struct md_badblocks bad;
	struct md_super_blocks *old; /* what stood on the member, before anything was written */
	bool former;                 /* found, and of this array */
	unsigned findings;
	unsigned index; /* in the reactor */
	int error;
	bool re_added;
	unsigned device;
};

static void adding_fini(struct adding *adding)
{
	if (adding->member != NULL)
		member_close(adding->member);
	free(adding->super);
	free(adding->old);
}

static int check_array(struct adding *adding)
{
	const struct manage_facts *facts = adding->facts;
	unsigned device = manage_find(adding->manage, facts, adding->path);
	bool is_free = false;

	if (device != ENGINE_NONE)
		return fault_set(adding->fault, -EBUSY, "%s is a member of the array already%s",
			adding->path,
			facts->devices[device].state == ENGINE_DEVICE_FAULTY
				? " (faulty); remove it first"
				: "; nothing to do");
	if (facts->status.failed)
		return fault_set(adding->fault, -EIO,
			"%s cannot be added: the array has failed; stop it and assemble it with "
			"--force",
			adding->path);
	if (facts->status.readonly)
		return fault_set(adding->fault, -EROFS,
			"%s cannot be added: the array is read-only; make it read-write first",
			adding->path);
	for (unsigned i = 0; i < facts->device_max; i++)
		is_free |= facts->devices[i].state == ENGINE_DEVICE_FREE;
	if (!is_free)
		return fault_set(adding->fault, -ENOSPC,
			"%s cannot be added: the array has room for %u devices, and as many; "
			"remove a faulty one first",
			adding->path, facts->device_max);
	return 0;
}

/*
 * The kernel's md gives an array the largest sectors of its members: at the next start there, a
 * file system that was made with smaller ones would not mount any more.
 */
static int check_sectors(const struct adding *adding)
{
	const struct manage_facts *facts = adding->facts;
	uint32_t largest = 0, its = adding->member->logical_block_bytes;

	for (unsigned i = 0; i < facts->device_max; i++) {
		const struct member *member;

		if (facts->devices[i].state == ENGINE_DEVICE_FREE)
			continue;
		member = manage_member(adding->manage, facts, i);
		largest = member->logical_block_bytes > largest ? member->logical_block_bytes
								: largest;
	}
	if (adding->force || its <= largest)
		return 0;
	return fault_set(adding->fault, -EINVAL,
		"%s has sectors of %u bytes, the members of the array have at most %u: under the "
		"kernel's md the array's own sectors would become larger, and what is on it might "
		"not mount; nothing was written. Use a device like the others; --force adds it "
		"all the same",
		adding->path, its, largest);
}

/* Is there a superblock, and is it one of this array? */
static int look_for_super(struct adding *adding)
{
	const struct manage *manage = adding->manage;
	int r;

	adding->super = calloc(1, sizeof(*adding->super));
	if (adding->super == NULL)
		return fault_set(adding->fault, -ENOMEM, "%s: out of memory", adding->path);
	r = manage->persistent ? probe_read_super(adding->member, adding->super, NULL) : -ENODATA;
	if (r == -EIO)
		return fault_set(adding->fault, r, "%s: cannot read it", adding->path);
	adding->former = r == 0 && memcmp(adding->super->set_uuid,
					   manage->assembly->super->set_uuid, 16) == 0;
	if (adding->former || !adding->re_add_only)
		return 0;
	return fault_set(adding->fault, -EINVAL,
		"%s cannot be re-added: it holds no superblock of this array; add it instead",
		adding->path);
}

static int refuse_findings(struct adding *adding, const struct probe_finding *findings)
{
	(void)fault_set(
		adding->fault, -EEXIST, "%s is not added because of what it holds:", adding->path);
	for (unsigned i = 0; i < adding->findings; i++)
		(void)fault_append(adding->fault, "%s %s (at byte %" PRIu64 ")", i == 0 ? "" : ",",
			findings[i].what, findings[i].offset_bytes);
	return fault_append(adding->fault,
		"; nothing was written; look at it first: --force adds it all the same, and that "
		"is lost");
}

static int look(struct adding *adding)
{
	struct probe_finding *findings;
	int r = probe_findings(adding->member, &findings, &adding->findings, adding->fault);

	if (r < 0)
		return r;
	if (adding->findings > 0 && !adding->former && !adding->force)
		r = refuse_findings(adding, findings);
	probe_findings_free(findings, adding->findings);
	return r;
}

/*
 * Whom of those in sync does its superblock report as gone? It was in use without that one: each
 * may have been written without the other, and the array's bitmap knows of one side only. Assembly
 * goes by the same rule (md/assembly_redundant.c). ENGINE_NONE: it knows them all.
 */
static unsigned find_unknown(const struct adding *adding)
{
	const struct manage_facts *facts = adding->facts;
	const struct md_super *super = adding->super;

	for (unsigned i = 0; i < facts->device_max; i++) {
		bool known = facts->devices[i].state != ENGINE_DEVICE_IN_SYNC ||
			     facts->devices[i].slot == ENGINE_NONE;

		for (unsigned k = 0; !known && k < super->role_count && k < MD_ROLES_MAX; k++)
			known = super->roles[k] == facts->devices[i].slot;
		if (!known)
			return i;
	}
	return ENGINE_NONE;
}

/*
 * May its old slot be asked for? The engine decides whether what it missed is known; here is what
 * the superblock alone says (specification 1.4: a device that was still being rebuilt holds no more
 * than recovery_offset, unless only the bitmap's ranges were missing).
 */
static int check_former(struct adding *adding)
{
	const struct md_super *super = adding->super;
	const uint32_t unfinished = MD_FEATURE_RECOVERY_OFFSET | MD_FEATURE_REPLACEMENT;
	const unsigned unknown = find_unknown(adding);
	char path[PATH_MAX];

	if (super->version != adding->manage->assembly->super->version)
		return fault_set(adding->fault, -EINVAL,
			"its superblock is of version %s, the array's are of %s",
			md_format(super->version)->name,
			md_format(adding->manage->assembly->super->version)->name);
	if (md_super_role(super) > MD_ROLE_SLOT_MAX)
		return fault_set(
			adding->fault, -EINVAL, "it had no slot in the array when it left");
	if ((super->feature_map & unfinished) != 0 &&
		(super->feature_map & MD_FEATURE_RECOVERY_BITMAP) == 0)
		return fault_set(adding->fault, -EINVAL,
			"it was still being rebuilt when it left the array");
	if (super->events > adding->facts->status.events)
		return fault_set(adding->fault, -EINVAL,
			"its event count %" PRIu64 " is above the array's %" PRIu64
			": it was used apart from it",
			super->events, adding->facts->status.events);
	if (unknown != ENGINE_NONE)
		return fault_set(adding->fault, -EINVAL,
			"it reports %s as failed: each may have been written without the other; "
			"if only what the array holds is to be kept, add it instead (all of it is "
			"copied then)",
			manage_path(manage_member(adding->manage, adding->facts, unknown), path));
	return 0;
}

/* What a former member knew to be bad still is. A new one begins with an empty log. */
static int read_log(struct adding *adding)
{
	uint64_t sector, sectors;
	uint8_t log[MD_BADBLOCKS_LOG_BYTES];
	int r = 0;

	md_badblocks_init(adding->super, &adding->bad);
	if ((adding->super->feature_map & MD_FEATURE_BAD_BLOCKS) == 0)
		return 0;
	if (md_badblocks_location(adding->super, &sector, &sectors) < 0 ||
		sectors * MD_SECTOR > sizeof(log))
		return fault_set(
			adding->fault, -EUCLEAN, "the place of its bad-block log is wrong");
	r = member_read(adding->member, sector * MD_SECTOR, log, sectors * MD_SECTOR);
	if (r < 0)
		return fault_set(
			adding->fault, r, "its bad-block log cannot be read: %s", strerror(-r));
	return md_badblocks_decode(adding->super, log, &adding->bad, adding->fault);
}

static struct engine_device describe(const struct adding *adding)
{
	const struct md_super *super = adding->super;
	struct engine_device device = {
		.member = adding->index,
		.slot = ENGINE_NONE,
		.write_mostly = adding->write_mostly,
		.failfast = adding->failfast,
		.data_bytes = adding->member->size_bytes / MD_SECTOR * MD_SECTOR,
		.logical_block_bytes = adding->member->logical_block_bytes,
	};

	if (!adding->manage->persistent)
		return device;
	device.super = super;
	device.bad = &adding->bad;
	device.data_offset_bytes = super->data_offset * MD_SECTOR;
	device.data_bytes = super->data_sectors * MD_SECTOR;
	device.write_mostly = (super->devflags & MD_DEVFLAG_WRITE_MOSTLY) != 0;
	device.failfast = (super->devflags & MD_DEVFLAG_FAILFAST) != 0;
	return device;
}

static void enter(void *argument)
{
	struct adding *adding = argument;

	adding->error = reactor_member_add(adding->manage->reactor, adding->member, &adding->index);
}

static void leave(void *argument)
{
	struct adding *adding = argument;

	reactor_member_remove(adding->manage->reactor, adding->index);
}

static void joined(struct adding *adding)
{
	const struct manage *manage = adding->manage;

	if (manage->joined != NULL)
		manage->joined(manage->owner, adding->member);
	adding->member = NULL;
}

/* Hand it to the engine. Once the engine has it, it is the array's, whatever else went wrong. */
static int join(struct adding *adding, enum engine_verb verb)
{
	const struct manage *manage = adding->manage;
	struct engine_command command = {.verb = verb, .fault = adding->fault};
	struct engine_device device;
	int r = manage->persistent ? read_log(adding) : 0;

	if (r < 0)
		return r;
	manage->on_engine(manage->owner, enter, adding);
	if (adding->error < 0)
		return fault_set(adding->fault, adding->error, "%s cannot be added: %s",
			adding->path, strerror(-adding->error));
	device = describe(adding);
	if (verb == ENGINE_RE_ADD)
		device.slot = md_super_role(adding->super);
	command.add = &device;
	r = manage_command(manage, &command);
	adding->device = command.result_device;
	if (command.result_device == ENGINE_NONE)
		manage->on_engine(manage->owner, leave, adding);
	else
		joined(adding);
	return r;
}

static unsigned free_number(const struct adding *adding)
{
	unsigned number = adding->manage->assembly->slot_count;
	const struct manage_facts *facts = adding->facts;

	for (unsigned i = 0; i < facts->device_max; i++) {
		if (facts->devices[i].state == ENGINE_DEVICE_FREE ||
			facts->devices[i].dev_number != number)
			continue;
		number++;
		i = UINT32_MAX; /* from 0 again */
	}
	return number;
}

static int plan(struct adding *adding)
{
	struct md_plan_device device = {
		.path = adding->path,
		.sectors = adding->member->size_bytes / MD_SECTOR,
		.major = adding->member->major,
		.minor = adding->member->minor,
		.write_mostly = adding->write_mostly,
		.failfast = adding->failfast,
	};

	if (!adding->manage->persistent)
		return 0;
	if (getrandom(device.device_uuid, sizeof(device.device_uuid), 0) !=
		(ssize_t)sizeof(device.device_uuid))
		return fault_set(adding->fault, -EIO, "no random numbers for a UUID");
	return md_plan_add(adding->manage->assembly->super, &device, free_number(adding),
		adding->super, adding->fault);
}

static int remember(struct adding *adding)
{
	adding->old = malloc(sizeof(*adding->old));
	if (adding->old == NULL)
		return fault_set(adding->fault, -ENOMEM, "%s: out of memory", adding->path);
	return probe_read_blocks(adding->member, adding->old, adding->fault);
}

/* It did not become a member: then it shall be what it was. */
static void put_back(struct adding *adding)
{
	int r = 0;

	for (unsigned version = 0; r == 0 && version < MD_VERSIONS; version++)
		if (adding->old->present[version])
			r = member_write(adding->member, adding->old->sector[version] * MD_SECTOR,
				adding->old->block[version], MD_SUPER_BYTES);
	if (r == 0)
		r = member_sync(adding->member);
	if (r < 0)
		(void)fault_append(adding->fault,
			"\n%s: what stood there could not be put back: %s", adding->path,
			strerror(-r));
}

/* Superblocks at other places must go: assembly would find two truths. */
static int add(struct adding *adding)
{
	bool zero;
	int r = look(adding);

	zero = adding->findings > 0 && adding->manage->persistent;
	if (r == 0)
		r = plan(adding);
	if (r == 0 && zero)
		r = remember(adding);
	if (r < 0)
		return r;
	if (zero)
		r = probe_zero_supers(adding->member, adding->fault);
	if (r >= 0)
		r = join(adding, ENGINE_ADD);
	if (r < 0 && zero && adding->member != NULL)
		put_back(adding);
	return r;
}

/* 0 done; -EAGAIN it has to be added instead. */
static int try_re_add(struct adding *adding)
{
	int r = check_former(adding);

	if (r == 0)
		r = join(adding, ENGINE_RE_ADD);
	adding->re_added = r == 0;
	if (r == 0 || adding->member == NULL)
		return r;
	if (adding->re_add_only) {
		(void)fault_prefix(adding->fault, "%s cannot be re-added: ", adding->path);
		return r;
	}
	*adding->fault = (struct fault){0};
	return -EAGAIN;
}

static int perform(struct adding *adding)
{
	int r = check_array(adding);

	if (r == 0)
		r = member_open(adding->path, MEMBER_EXCLUSIVE, &adding->member, adding->fault);
	if (r == 0)
		r = check_sectors(adding);
	if (r == 0)
		r = look_for_super(adding);
	if (r < 0)
		return r;
	r = -EAGAIN;
	if (adding->former && !adding->never_re_add)
		r = try_re_add(adding);
	return r == -EAGAIN ? add(adding) : r;
}

json_t *manage_add(const struct manage *manage, const struct manage_facts *facts, json_t *request,
	struct fault *fault)
{
	const char *verb = json_string_value(json_object_get(request, "verb"));
	_cleanup_(adding_fini) struct adding adding = {
		.manage = manage,
		.facts = facts,
		.fault = fault,
		.path = json_string_value(json_object_get(request, "device")),
		.force = json_is_true(json_object_get(request, "force")),
		.re_add_only = strcmp(verb, "re-add") == 0,
		.never_re_add = strcmp(verb, "add-spare") == 0,
		.write_mostly = json_is_true(json_object_get(request, "write_mostly")),
		.failfast = json_is_true(json_object_get(request, "failfast")),
	};
	json_t *reply;

	if (adding.path == NULL ||
		(adding.path[0] != '/' && !member_is_network_word(adding.path))) {
		(void)fault_set(
			fault, -EINVAL, "add: \"device\" must be an absolute path or a URI");
		return NULL;
	}
	if (perform(&adding) < 0)
		return NULL;
	reply = manage_reply(adding.path);
	(void)json_object_set_new(reply, "re_added", json_boolean(adding.re_added)); /* NULL-safe */
	return reply;
}
