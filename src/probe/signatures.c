/* SPDX-License-Identifier: MIT */

/*
 * What lives on a device already. libblkid knows the world's formats; our own decoders know md's,
 * also where libblkid gives up (damaged fields, four places at once).
 */

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "probe/probe.h"
#include "probe/superblocks.h"

#define FINDINGS_MAX 64u /* a device that says more than this has said enough */

struct findings {
	struct probe_finding *list;
	unsigned count;
};

void probe_findings_free(struct probe_finding *findings, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		free(findings[i].what);
		free(findings[i].type);
		free(findings[i].uuid);
	}
	free(findings);
}

static void findings_fini(struct findings *findings)
{
	probe_findings_free(findings->list, findings->count);
}

static void probe_freep(blkid_probe *probe)
{
	if (*probe != NULL)
		blkid_free_probe(*probe);
}

__attribute__((format(printf, 5, 6))) static int findings_add(struct findings *findings,
	const char *type, uint64_t offset_bytes, const char *uuid, const char *what, ...)
{
	struct probe_finding *list, *finding;
	va_list args;
	int r;

	list = reallocarray(findings->list, findings->count + 1, sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	findings->list = list;
	finding = &list[findings->count++];
	*finding = (struct probe_finding){.type = strdup(type),
		.offset_bytes = offset_bytes,
		.uuid = uuid == NULL ? NULL : strdup(uuid)};

	va_start(args, what);
	r = vasprintf(&finding->what, what, args);
	va_end(args);
	if (r < 0)
		finding->what = NULL;
	if (r < 0 || finding->type == NULL || (uuid != NULL && finding->uuid == NULL))
		return -ENOMEM;
	return 0;
}

static int add_md(struct findings *findings, const struct md_super *super, uint64_t sector)
{
	const struct md_format *format = md_format(super->version);
	const char *level = md_level_name(super->level);
	char type[16], uuid[MD_UUID_TEXT];

	snprintf(type, sizeof(type), "md-%s", format->name);
	md_uuid_format(super->set_uuid, uuid);
	return findings_add(findings, type, sector * MD_SECTOR, uuid,
		"md %s superblock, member of a %s array of %u devices%s%s%s", format->name,
		level != NULL ? level : "unknown level", super->raid_disks,
		super->name[0] != '\0' ? ", name \"" : "", super->name,
		super->name[0] != '\0' ? "\"" : "");
}

struct md_work {
	struct md_super_blocks blocks;
	struct md_super super;
};

static int find_md(const struct member *member, struct findings *findings, struct fault *fault)
{
	_cleanup_free_ struct md_work *work = calloc(1, sizeof(*work));
	int r;

	if (work == NULL)
		return -ENOMEM;
	r = probe_read_blocks(member, &work->blocks, fault);
	for (unsigned v = 0; r == 0 && v < MD_VERSIONS; v++) {
		if (!probe_super_is_here(
			    &work->blocks, v, member->size_bytes / MD_SECTOR, &work->super))
			continue;
		work->super.version = v;
		r = add_md(findings, &work->super, work->blocks.sector[v]);
	}
	return r;
}

static const char *value_of(blkid_probe probe, const char *name)
{
	const char *value;

	return blkid_probe_lookup_value(probe, name, &value, NULL) == 0 ? value : NULL;
}

/* What libblkid's type words mean to people; others are named by the word itself. */
static const struct {
	const char *type, *what;
} words[] = {
	{"LVM2_member", "LVM physical volume"},
	{"LVM1_member", "LVM physical volume (old format)"},
	{"crypto_LUKS", "LUKS encrypted volume"},
	{"swap", "swap area"},
	{"swsuspend", "hibernation image in a swap area"},
	{"bcache", "bcache device"},
	{"zfs_member", "ZFS pool member"},
	{"ceph_bluestore", "Ceph BlueStore device"},
	{"linux_raid_member", "md superblock"},
	{"isw_raid_member", "Intel firmware RAID member (IMSM)"},
	{"ddf_raid_member", "DDF firmware RAID member"},
	{"drbd", "DRBD device"},
};

static const char *word_of(const char *type)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].type, type) == 0)
			return words[i].what;
	return NULL;
}

static const char *noun_of(const char *usage)
{
	if (usage != NULL && strcmp(usage, "filesystem") == 0)
		return " file system";
	if (usage != NULL && strcmp(usage, "raid") == 0)
		return " (RAID or volume member)";
	return " signature";
}

static int add_super(
	struct findings *findings, blkid_probe probe, const char *type, uint64_t offset_bytes)
{
	const char *label = value_of(probe, "LABEL");
	const char *word = word_of(type);

	/* Ours have been found, and described better, already. */
	for (unsigned i = 0; i < findings->count; i++)
		if (strcmp(type, "linux_raid_member") == 0 &&
			findings->list[i].offset_bytes == offset_bytes)
			return 0;

	return findings_add(findings, type, offset_bytes, value_of(probe, "UUID"), "%s%s%s%s%s%s",
		word != NULL ? word : type, word != NULL ? "" : noun_of(value_of(probe, "USAGE")),
		label != NULL ? ", label \"" : "", label != NULL ? label : "",
		label != NULL ? "\"" : "",
		value_of(probe, "SBBADCSUM") != NULL ? " (checksum wrong)" : "");
}

static bool has_gpt(const struct findings *findings)
{
	for (unsigned i = 0; i < findings->count; i++)
		if (strcmp(findings->list[i].type, "gpt") == 0)
			return true;
	return false;
}

static int add_table(struct findings *findings, blkid_probe probe, const char *type,
	uint64_t offset_bytes, uint64_t size_bytes)
{
	const char *uuid = value_of(probe, "PTUUID");

	if (strcmp(type, "gpt") == 0)
		return findings_add(findings, type, offset_bytes, uuid, "GPT partition table%s",
			offset_bytes > size_bytes / 2 ? " (backup)" : "");
	if (strcmp(type, "PMBR") == 0)
		return has_gpt(findings) ? 0
					 : findings_add(findings, type, offset_bytes, uuid,
						   "protective MBR of a GPT that is not there");
	return findings_add(findings, type, offset_bytes, uuid, "%s partition table", type);
}

/*
 * Take down one result of libblkid and hide its magic bytes (in memory only), so that the next
 * round sees what lies under it: a backup GPT, a second copy.
 */
static int take_result(struct findings *findings, blkid_probe probe, uint64_t size_bytes)
{
	const char *super = value_of(probe, "TYPE");
	const char *table = value_of(probe, "PTTYPE");
	const char *offset = value_of(probe, super != NULL ? "SBMAGIC_OFFSET" : "PTMAGIC_OFFSET");
	uint64_t offset_bytes = offset != NULL ? strtoull(offset, NULL, 10) : 0;
	const char *magic;
	size_t length;
	int r = 0;

	if (super != NULL)
		r = add_super(findings, probe, super, offset_bytes);
	else if (table != NULL)
		r = add_table(findings, probe, table, offset_bytes, size_bytes);
	if (r < 0 || offset == NULL)
		return r;

	if (blkid_probe_lookup_value(
		    probe, super != NULL ? "SBMAGIC" : "PTMAGIC", &magic, &length) == 0 &&
		length > 0 && blkid_probe_hide_range(probe, offset_bytes, length) == 0)
		blkid_probe_step_back(probe);
	return 0;
}

/*
 * libblkid reads at odd offsets, which a descriptor opened with O_DIRECT refuses: it gets a plain
 * one of its own for the same open file.
 */
static int open_plain(const struct member *member)
{
	char path[64];
	int fd;

	if (member->network != NULL)
		return probe_copy_ends(member);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", member->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		fd = open(member->path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int set_up(blkid_probe probe, int fd)
{
	if (blkid_probe_set_device(probe, fd, 0, 0) != 0)
		return errno != 0 ? -errno : -EIO;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_TYPE |
							 BLKID_SUBLKS_USAGE | BLKID_SUBLKS_LABEL |
							 BLKID_SUBLKS_UUID | BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
	return 0;
}

static int find_others(const struct member *member, struct findings *findings)
{
	_cleanup_close_ int fd = -1;
	_cleanup_(probe_freep) blkid_probe probe = NULL;
	int r;

	if (member->size_bytes == 0)
		return 0;
	fd = open_plain(member);
	if (fd < 0)
		return fd;
	probe = blkid_new_probe();
	if (probe == NULL)
		return -ENOMEM;
	r = set_up(probe, fd);
	if (r < 0)
		return r;

	for (unsigned i = 0; i < FINDINGS_MAX; i++) {
		errno = 0;
		r = blkid_do_probe(probe);
		if (r == 1)
			return 0;
		if (r != 0)
			return errno != 0 ? -errno : -EIO;
		r = take_result(findings, probe, member->size_bytes);
		if (r < 0)
			return r;
	}
	return 0;
}

int probe_findings(const struct member *member, struct probe_finding **ret, unsigned *ret_count,
	struct fault *fault)
{
	_cleanup_(findings_fini) struct findings findings = {0};
	int r;

	r = find_md(member, &findings, fault);
	if (r < 0 && r != -ENOMEM)
		return r;
	if (r == 0)
		r = find_others(member, &findings);
	if (r < 0)
		return fault_set(fault, r, "%s: cannot look for what is on it: %s", member->path,
			strerror(-r));

	*ret_count = findings.count;
	*ret = steal_ptr(findings.list);
	findings.count = 0;
	return 0;
}
