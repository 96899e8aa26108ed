/* SPDX-License-Identifier: MIT */
/*
 * The plan against what mdadm 4.2 wrote when it was given the same arguments
 * (tests/golden/created.txt): every byte of the superblocks and of the bitmaps' headers. Only what
 * is random or the time is taken over from there.
 */
#include "md/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "md/golden.h"
#include "util/cleanup.h"

#define DEVICES_MAX 8
#define UBD_MAJOR 98

struct request {
	struct md_plan_options options;
	struct md_plan_device devices[DEVICES_MAX];
	unsigned count, index;
};

static const char *file_name;

static uint64_t size_of(const char *text)
{
	char *end;
	const uint64_t value = strtoull(text, &end, 10);

	switch (*end) {
	case 'G':
		return value << 30;
	case 'M':
		return value << 20;
	default:
		return value << 10;
	}
}

/* The value of --KEY=…, or NULL. */
static const char *value_of(const char *word, const char *key)
{
	const size_t length = strlen(key);

	return strncmp(word, key, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool read_flag(const char *word, struct md_plan_options *options)
{
	if (strcmp(word, "--assume-clean") == 0)
		options->assume_clean = true;
	else if (strcmp(word, "--force") == 0)
		options->force = true;
	else if (strcmp(word, "--bitmap=internal") == 0)
		options->bitmap = MD_PLAN_BITMAP_INTERNAL;
	else if (strcmp(word, "--bitmap=none") == 0)
		options->bitmap = MD_PLAN_BITMAP_NONE;
	else if (strncmp(word, "-l", 2) == 0)
		options->level = (int)strtol(word + 2, NULL, 10);
	else if (strncmp(word, "-n", 2) == 0)
		options->raid_disks = (unsigned)strtoul(word + 2, NULL, 10);
	else if (strncmp(word, "-x", 2) == 0)
		options->spare_disks = (unsigned)strtoul(word + 2, NULL, 10);
	else
		return false;
	return true;
}

static void read_value(const char *word, struct md_plan_options *options)
{
	const char *value;
	uint32_t layout;

	if ((value = value_of(word, "--chunk")) != NULL) {
		options->chunk_sectors = size_of(value) / MD_SECTOR;
	} else if ((value = value_of(word, "--size")) != NULL) {
		options->size_sectors = size_of(value) / MD_SECTOR;
	} else if ((value = value_of(word, "--data-offset")) != NULL) {
		options->data_offset = size_of(value) / MD_SECTOR;
	} else if ((value = value_of(word, "--bitmap-chunk")) != NULL) {
		options->bitmap_chunk_bytes = size_of(value);
	} else if ((value = value_of(word, "--delay")) != NULL) {
		options->daemon_sleep_seconds = (uint32_t)strtoul(value, NULL, 10);
	} else if ((value = value_of(word, "--write-behind")) != NULL) {
		options->write_behind = (uint32_t)strtoul(value, NULL, 10);
	} else if ((value = value_of(word, "--consistency-policy")) != NULL) {
		assert_int_equal(md_consistency_parse(value, &options->consistency), 0);
	} else if ((value = value_of(word, "--layout")) != NULL) {
		assert_int_equal(md_layout_parse(options->level, value, &layout), 0);
		options->layout = layout;
	} else {
		fail_msg("argument %s is not understood", word);
	}
}

static void read_arguments(const char *arguments, struct md_plan_options *options)
{
	char text[128], *save = NULL;

	options->chunk_sectors = options->layout = options->size_sectors = MD_PLAN_DEFAULT;
	options->data_offset = MD_PLAN_DEFAULT;
	(void)snprintf(text, sizeof(text), "%s", arguments);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!read_flag(word, options))
			read_value(word, options);
}

/* "131072:16:@": sectors, minor, and @ or + from there on write-mostly or failfast, as mdadm. */
static void read_devices(const char *list, struct request *request)
{
	bool write_mostly = false, failfast = false;
	char text[128], *save = NULL;

	(void)snprintf(text, sizeof(text), "%s", list);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		struct md_plan_device *device = &request->devices[request->count++];
		unsigned long long sectors;
		char flag;

		assert_true(request->count <= DEVICES_MAX);
		if (strcmp(word, "missing") == 0)
			continue;
		assert_int_equal(sscanf(word, "%llu:%u:%c", &sectors, &device->minor, &flag), 3);
		write_mostly = write_mostly || flag == '@';
		failfast = failfast || flag == '+';
		device->path = "device";
		device->sectors = sectors;
		device->major = UBD_MAJOR;
		device->write_mostly = write_mostly;
		device->failfast = failfast;
	}
}

static struct request request_of(const struct golden *golden, const struct md_super *theirs)
{
	struct request request = {
		.options = {.version = golden_version(golden),
			.name = md_name_bare(theirs->name),
			.homehost = "golden",
			.md_minor = 0,
			.now_seconds = theirs->ctime},
		.index = (unsigned)strtoul(golden_say(golden, "Index"), NULL, 10),
	};

	read_arguments(golden_say(golden, "Arguments"), &request.options);
	read_devices(golden_say(golden, "Devices"), &request);
	memcpy(request.options.set_uuid, theirs->set_uuid, 16);
	memcpy(request.devices[request.index].device_uuid, theirs->device_uuid, 16);
	return request;
}

/* Bytes of the superblock that are written: whole sectors. */
static unsigned written(const struct md_super *super)
{
	return super->version == MD_VERSION_0_90 ? MD_SUPER_BYTES
						 : (256 + 2 * super->role_count + 511) / 512 * 512;
}

static void compare(const struct golden *golden, const char *what, const uint8_t *ours,
	const uint8_t *theirs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ours[i] != theirs[i])
			fail_msg("%s: %s byte %u is %02x, mdadm wrote %02x", golden->name, what, i,
				ours[i], theirs[i]);
}

static void hex(const char *text, uint8_t *ret, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned byte;

		assert_int_equal(sscanf(text + 2 * (size_t)i, "%2x", &byte), 1);
		ret[i] = (uint8_t)byte;
	}
}

static void compare_bitmap(
	const struct golden *golden, const struct request *request, const struct md_super *super)
{
	_cleanup_free_ uint8_t *area = malloc(MD_PLAN_BITMAP_BYTES_MAX);
	uint8_t theirs[MD_BITMAP_HEADER_BYTES] = {0};
	struct fault fault = {0};
	struct md_bitmap header;
	size_t bytes;

	assert_non_null(area);
	bytes = md_plan_bitmap(&request->options, super, &header, area);
	if (golden_say(golden, "BitmapBytes") == NULL) {
		assert_int_equal(bytes, 0);
		return;
	}
	hex(golden_say(golden, "Bitmap0"), theirs, 36);
	hex(golden_say(golden, "Bitmap1"), theirs + 36, 36);
	compare(golden, "bitmap", area, theirs, sizeof(theirs));
	assert_int_equal(bytes, strtoul(golden_say(golden, "BitmapBytes"), NULL, 10));
	for (size_t i = MD_BITMAP_HEADER_BYTES; i < bytes; i++)
		assert_int_equal(area[i], 0xff);
	/* 0.90 starts with events 1, the bitmap with 0: all set and stale, as mdadm leaves it. */
	assert_int_equal(md_bitmap_check(&header, super, &fault),
		super->version == MD_VERSION_0_90 ? -ESTALE : 0);
}

static void check_member(const struct golden *golden)
{
	const struct md_format *format = md_format(golden_version(golden));
	_cleanup_free_ struct md_super *ours = calloc(DEVICES_MAX, sizeof(*ours));
	struct md_super theirs;
	struct fault fault = {0};
	struct request request;
	uint8_t block[MD_SUPER_BYTES];
	int r;

	assert_non_null(ours);
	assert_int_equal(
		format->decode(golden->block, golden->at, golden->sectors, &theirs, &fault), 0);
	request = request_of(golden, &theirs);
	r = md_plan_create(&request.options, request.devices, request.count, ours, &fault);
	if (r < 0)
		fail_msg("%s: %d %s", golden->name, r, fault.text);
	format->encode(&ours[request.index], block);
	assert_int_equal(ours[request.index].super_offset, golden->at);
	compare(golden, "superblock", block, golden->block, written(&theirs));
	compare_bitmap(golden, &request, &ours[request.index]);
}

static void test_created(void **state)
{
	_cleanup_fclose_ FILE *file = fopen(file_name, "re");
	struct golden golden;
	unsigned count = 0;

	assert_non_null(file);
	for (; golden_next(file, &golden); count++)
		check_member(&golden);
	print_message("%u members\n", count);
	assert_true(count > 200);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_created)};

	if (argc != 2)
		return 2;
	file_name = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
