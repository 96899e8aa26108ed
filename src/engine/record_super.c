/* SPDX-License-Identifier: MIT */
/*
 * What the superblocks say: the state of the engine in the words of specification 1.2, 1.6, 2.3 and
 * 8.3. Facts of the array come from the freshest superblock at the start, those of a device from
 * its own, and everything that can change is filled in anew for each update.
 */
#include <errno.h>
#include <string.h>

#include "engine/record_state.h"
#include "util/rounding.h"

#define DISKS_090 27u
#define DISK_FAULTY 0x1u
#define DISK_IN_SYNC 0x6u /* active and in sync */
#define DISK_EMPTY 0x9u   /* removed and faulty: an empty slot */
#define DEVFLAGS_SHIFT_090 9
#define RECOVERY_CP_MAX 0xfffffffeu /* all ones would say clean */
#define SECONDS_MASK ((UINT64_C(1) << 40) - 1)
#define FEATURES_OF_DEVICE                                                                        \
	((uint32_t)(MD_FEATURE_RECOVERY_OFFSET | MD_FEATURE_BAD_BLOCKS | MD_FEATURE_REPLACEMENT | \
		    MD_FEATURE_NEW_OFFSET | MD_FEATURE_RECOVERY_BITMAP))

static bool is_090(const struct record *record)
{
	return record->master.version == MD_VERSION_0_90;
}

static bool number_is_used(const struct record *record, unsigned number)
{
	for (unsigned i = 0; i < record->engine->device_max; i++)
		if (record->devices[i].present && record->devices[i].super.dev_number == number)
			return true;
	return false;
}

bool record_super_number_is_free(const struct record *record, unsigned number)
{
	return number < MD_ROLES_MAX && !number_is_used(record, number);
}

/*
 * The lowest number that no device has. Version 0.90 has no numbers of its own: a descriptor must
 * be left for each slot and each device that is in none.
 */
unsigned record_super_free_number(const struct record *record)
{
	unsigned most = is_090(record) ? DISKS_090 : MD_ROLES_MAX, number = 0, beside = 0;

	if (is_090(record)) {
		for (unsigned i = 0; i < record->engine->device_max; i++)
			beside += record->devices[i].present &&
				  record->engine->devices[i].state != ENGINE_DEVICE_IN_SYNC;
		if (record->master.raid_disks + beside + 1 > most)
			return ENGINE_NONE;
	}
	while (number < most && number_is_used(record, number))
		number++;
	return number < most ? number : ENGINE_NONE;
}

/* Array from the master, the rest from the device's own. */
void record_super_adopt(
	struct record *record, struct record_device *d, const struct engine_device *device)
{
	const struct md_super *own = device->super;
	struct md_super *s = &d->super;

	*s = record->master;
	s->feature_map &= ~FEATURES_OF_DEVICE;
	s->data_offset = own->data_offset;
	s->data_sectors = own->data_sectors;
	s->super_offset = own->super_offset;
	s->recovery_offset = 0;
	s->journal_tail = 0;
	s->new_offset = 0;
	s->dev_number = own->dev_number;
	s->corrected_reads = own->corrected_reads;
	memcpy(s->device_uuid, own->device_uuid, sizeof(s->device_uuid));
	s->devflags = own->devflags;
	s->bblog_shift = own->bblog_shift;
	s->bblog_sectors = own->bblog_sectors;
	s->bblog_offset = own->bblog_offset;
	s->v090.this_disk = own->v090.this_disk;
	s->v090.foreign_order = own->v090.foreign_order;
	d->corrected_before = own->corrected_reads;
	d->block_bytes = (uint32_t)min_u64(
		max_u64(device->logical_block_bytes, MD_SECTOR), RECORD_BLOCK_BYTES);
	d->present = true;
}

static const struct md_super *freshest(const struct engine_redundancy *redundancy)
{
	const struct engine_device *best = NULL;

	for (unsigned i = 0; i < redundancy->device_count; i++) {
		const struct engine_device *device = &redundancy->devices[i];

		if (device->super == NULL)
			continue;
		if (best == NULL || (best->slot == ENGINE_NONE && device->slot != ENGINE_NONE) ||
			(device->slot != ENGINE_NONE &&
				device->super->events > best->super->events))
			best = device;
	}
	return best != NULL ? best->super : NULL;
}

static uint32_t features_of(const struct record_device *d)
{
	const struct device *device = &d->record->engine->devices[d->device];
	uint32_t features = 0;

	if (device->state == ENGINE_DEVICE_REBUILDING) {
		features |= MD_FEATURE_RECOVERY_OFFSET;
		if (device->by_bitmap && d->record->bitmap != NULL)
			features |= MD_FEATURE_RECOVERY_BITMAP;
	}
	if (device->slot != ENGINE_NONE && device->replacement)
		features |= MD_FEATURE_REPLACEMENT;
	if (d->bad.count > 0)
		features |= MD_FEATURE_BAD_BLOCKS;
	return features;
}

/* What the members say of it already, as the assembly understood it. */
static void fill_at_start(struct record_device *d)
{
	const struct device *device = &d->record->engine->devices[d->device];

	d->recorded = (struct record_fact){device->state, device->slot, device->replacement};
	if (d->super.version == MD_VERSION_0_90)
		return;
	d->super.feature_map |= features_of(d);
	if (device->state != ENGINE_DEVICE_REBUILDING)
		return;
	d->super.recovery_offset = device->recovered_bytes / MD_SECTOR;
	if (device->by_bitmap)
		d->super.feature_map |= MD_FEATURE_RECOVERY_BITMAP;
}

static int take_device(struct record *record, unsigned number, const struct engine_device *device,
	struct fault *fault)
{
	struct record_device *d = &record->devices[number];
	bool used;
	int r;

	if (device->super == NULL || device->super->version != record->master.version)
		return fault_set(fault, -EINVAL,
			"device %u has no superblock like the others, which the array keeps its "
			"state in",
			number);
	used = device->super->dev_number >= MD_ROLES_MAX ||
	       number_is_used(record, device->super->dev_number);
	record_super_adopt(record, d, device);
	if (used) {
		d->present = false;
		d->super.dev_number = record_super_free_number(record);
		d->present = true;
	}
	d->is_behind = device->in_sync && device->super->events < record->master.events;
	r = badblocks_take(d, device->super, device->bad, fault);
	if (r < 0)
		return r;
	fill_at_start(d);
	/* What it missed comes first; only then something new. */
	md_format(d->super.version)->encode(d->is_behind ? &d->super : device->super, d->written);
	return 0;
}

/* Sets record->kept; without superblocks there is nothing else to do. */
int record_super_init(
	struct record *record, const struct engine_redundancy *redundancy, struct fault *fault)
{
	const struct md_super *best = freshest(redundancy);
	int r = 0;

	record->kept = best != NULL;
	if (best == NULL)
		return 0;
	record->master = *best;
	for (unsigned i = 0; i < redundancy->device_count && r == 0; i++)
		r = take_device(record, i, &redundancy->devices[i], fault);
	return r;
}

static uint16_t role_of(const struct device *device)
{
	switch (device->state) {
	case ENGINE_DEVICE_IN_SYNC:
	case ENGINE_DEVICE_REBUILDING:
		return (uint16_t)device->slot;
	case ENGINE_DEVICE_FAULTY:
		return MD_ROLE_FAULTY;
	default:
		return MD_ROLE_SPARE;
	}
}

/* Anew each time: so the numbers of members that are not here vanish (8.3). max_dev only grows. */
static void fill_roles(struct record *record)
{
	struct md_super *master = &record->master;

	for (unsigned i = 0; i < MD_ROLES_MAX; i++)
		master->roles[i] = MD_ROLE_SPARE;
	for (unsigned i = 0; i < record->engine->device_max; i++) {
		const struct record_device *d = &record->devices[i];

		if (!d->present)
			continue;
		master->roles[d->super.dev_number] = role_of(&record->engine->devices[i]);
		master->role_count = (uint32_t)max_u64(
			master->role_count, (uint64_t)d->super.dev_number + 1);
	}
}

/* Version 0.90 knows one member in sync for each slot. */
static bool has_slot_090(const struct record *record, const struct record_device *d)
{
	const struct device *device = &record->engine->devices[d->device];

	return device->state == ENGINE_DEVICE_IN_SYNC &&
	       record->engine->redundant->active[device->slot] == d->device;
}

static uint32_t devflags_of(const struct device *device)
{
	return (device->write_mostly ? MD_DEVFLAG_WRITE_MOSTLY : 0) |
	       (device->failfast ? MD_DEVFLAG_FAILFAST : 0);
}

static void describe_090(struct record *record, struct record_device *d, unsigned number)
{
	const struct device *device = &record->engine->devices[d->device];
	struct md_super_090 *v = &record->master.v090;
	bool in_sync = has_slot_090(record, d);
	struct md_super_090_disk *disk = &v->disks[number];

	d->super.dev_number = number;
	*disk = (struct md_super_090_disk){.number = number,
		.major = d->super.v090.this_disk.major,
		.minor = d->super.v090.this_disk.minor,
		.raid_disk = in_sync ? device->slot : number,
		.state = (in_sync                                        ? DISK_IN_SYNC
				 : device->state == ENGINE_DEVICE_FAULTY ? DISK_FAULTY
									 : 0) |
			 devflags_of(device) << DEVFLAGS_SHIFT_090};
	record->master.roles[number] = device->state == ENGINE_DEVICE_FAULTY ? MD_ROLE_FAULTY
				       : in_sync ? (uint16_t)device->slot
						 : MD_ROLE_SPARE;
	v->nr_disks++;
	v->active_disks += in_sync;
	v->working_disks += device->state != ENGINE_DEVICE_FAULTY;
	v->spare_disks += !in_sync && device->state != ENGINE_DEVICE_FAULTY;
}

static void describe_missing_090(struct record *record)
{
	struct md_super_090 *v = &record->master.v090;

	for (unsigned slot = 0; slot < record->master.raid_disks && slot < DISKS_090; slot++) {
		struct md_super_090_disk *disk = &v->disks[slot];

		if ((disk->state & DISK_IN_SYNC) != 0)
			continue;
		*disk = (struct md_super_090_disk){
			.number = slot, .raid_disk = slot, .state = DISK_EMPTY};
		v->failed_disks++;
	}
}

/*
 * The table of descriptors (2.3): who is in sync stands at its slot, all others follow behind the
 * slots. Faulty ones come last, so that they are what is left out if the table is full.
 */
static void fill_disks_090(struct record *record)
{
	struct md_super_090 *v = &record->master.v090;
	unsigned next = record->master.raid_disks;

	memset(v->disks, 0, sizeof(v->disks));
	v->nr_disks = v->active_disks = v->working_disks = v->failed_disks = v->spare_disks = 0;
	for (unsigned i = 0; i < MD_ROLES_MAX; i++)
		record->master.roles[i] = MD_ROLE_SPARE;
	for (unsigned faulty = 0; faulty < 2; faulty++)
		for (unsigned i = 0; i < record->engine->device_max; i++) {
			struct record_device *d = &record->devices[i];
			const struct device *device = &record->engine->devices[i];

			if (!d->present || (device->state == ENGINE_DEVICE_FAULTY) != faulty)
				continue;
			if (has_slot_090(record, d))
				describe_090(record, d, device->slot);
			else if (next < DISKS_090)
				describe_090(record, d, next++);
		}
	describe_missing_090(record);
}

static void fill_resync(struct record *record, uint64_t resync_offset)
{
	struct md_super *master = &record->master;

	master->resync_offset = resync_offset;
	if (!is_090(record))
		return;
	if (resync_offset != MD_CLEAN)
		master->resync_offset = min_u64(resync_offset, RECOVERY_CP_MAX);
	master->v090.cp_events = resync_offset == MD_CLEAN ? master->events : 0;
}

/* What is the device's own, and then all that is the array's. */
static void fill_device(struct record_device *d)
{
	const struct md_super *master = &d->record->master;
	const struct device *device = &d->record->engine->devices[d->device];
	struct md_super *s = &d->super;
	struct md_super_090_disk this = s->v090.this_disk;

	s->feature_map = master->feature_map & ~FEATURES_OF_DEVICE;
	if (master->version != MD_VERSION_0_90)
		s->feature_map |= features_of(d);
	s->recovery_offset = device->state == ENGINE_DEVICE_REBUILDING
				     ? device->recovered_bytes / MD_SECTOR
				     : 0;
	s->devflags = (uint8_t)devflags_of(device);
	s->corrected_reads = d->corrected_before + device->corrected_reads;
	s->utime = master->utime;
	s->events = master->events;
	s->resync_offset = master->resync_offset;
	s->role_count = master->role_count;
	memcpy(s->roles, master->roles, sizeof(s->roles));
	if (master->version != MD_VERSION_0_90)
		return;
	s->v090.cp_events = master->v090.cp_events;
	memcpy(s->v090.disks, master->v090.disks, sizeof(s->v090.disks));
	s->v090.nr_disks = master->v090.nr_disks;
	s->v090.active_disks = master->v090.active_disks;
	s->v090.working_disks = master->v090.working_disks;
	s->v090.failed_disks = master->v090.failed_disks;
	s->v090.spare_disks = master->v090.spare_disks;
	if (s->dev_number < DISKS_090)
		this = master->v090.disks[s->dev_number];
	s->v090.this_disk = this;
}

static enum record_rank rank_of(const struct record_device *d)
{
	const struct device *device = &d->record->engine->devices[d->device];

	if (device->slot != ENGINE_NONE && device->slot != d->recorded.slot)
		return RECORD_NEW;
	if (device->state == ENGINE_DEVICE_IN_SYNC &&
		(d->recorded.state != ENGINE_DEVICE_IN_SYNC ||
			d->recorded.replacement != device->replacement))
		return RECORD_BETTER;
	return RECORD_SAME;
}

/* Could a power cut within the write leave neither the old block nor the new one? */
static bool can_tear(const struct record_device *d)
{
	unsigned changed = 0;

	if (d->block_bytes >= MD_SUPER_BYTES)
		return false;
	for (size_t at = 0; at < record_super_bytes(d); at += MD_SECTOR)
		changed += memcmp(d->block + at, d->written + at, MD_SECTOR) != 0;
	return changed > 1;
}

size_t record_super_bytes(const struct record_device *d)
{
	if (d->super.version == MD_VERSION_0_90)
		return MD_SUPER_BYTES;
	return min_u64(
		MD_SUPER_BYTES, round_up(256 + 2 * (uint64_t)d->super.role_count, d->block_bytes));
}

static void fill_as_it_is(struct record_device *d)
{
	const struct device *device = &d->record->engine->devices[d->device];

	fill_device(d);
	d->filled = (struct record_fact){device->state, device->slot, device->replacement};
	d->rank = rank_of(d);
}

/* Nothing new but the event count. */
static void fill_as_before(struct record_device *d)
{
	const struct md_super *master = &d->record->master;

	d->super.utime = master->utime;
	d->super.events = master->events;
	d->super.resync_offset = master->resync_offset;
	d->super.v090.cp_events = master->v090.cp_events;
	d->filled = d->recorded;
	d->rank = RECORD_SAME;
}

void record_super_fill(struct record *record, uint64_t resync_offset)
{
	struct engine *engine = record->engine;
	bool as_before = record->update.again;

	record->master.utime = engine->world->ops->wall_seconds(engine->world) & SECONDS_MASK;
	fill_resync(record, resync_offset);
	if (is_090(record) && !as_before)
		fill_disks_090(record);
	else if (!as_before)
		fill_roles(record);
	for (unsigned i = 0; i < engine->device_max; i++) {
		struct record_device *d = &record->devices[i];

		d->is_filled = record_device_lives(d) && !(as_before && d->is_new);
		if (!d->is_filled)
			continue;
		if (as_before)
			fill_as_before(d);
		else
			fill_as_it_is(d);
		md_format(d->super.version)->encode(&d->super, d->block);
		record->update.serial = record->update.serial || can_tear(d);
	}
}
