/* SPDX-License-Identifier: MIT */

/* Our texts against those that the real mdadm 4.2 printed (golden/, README there). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/show/examine.h"
#include "cli/show/format.h"
#include "cli/show/running.h"
#include "util/bytes.h"
#include "util/cleanup.h"

#define BITMAP_AT (16 + MD_SUPER_BYTES)

struct text {
	char *data;
	size_t length;
	FILE *out;
};

static void text_open(struct text *text)
{
	text->out = open_memstream(&text->data, &text->length);
	assert_non_null(text->out);
}

static char *text_close(struct text *text)
{
	fclose(text->out);
	return text->data;
}

static char *slurp(const char *folder, const char *name, const char *ending, size_t *ret_length)
{
	char path[PATH_MAX], *data;
	long length;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%s%s", GOLDEN, folder, name, ending);
	file = fopen(path, "re");
	if (file == NULL)
		fail_msg("cannot open %s", path);
	fseek(file, 0, SEEK_END);
	length = ftell(file);
	rewind(file);
	data = calloc(1, (size_t)length + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, (size_t)length, file), length);
	fclose(file);
	if (ret_length != NULL)
		*ret_length = (size_t)length;
	return data;
}

static void assert_text(const char *name, const char *expected, const char *actual)
{
	if (strcmp(expected, actual) == 0)
		return;
	fprintf(stderr, "%s: expected\n%s\ngot\n%s\n", name, expected, actual);
	fail_msg("%s differs", name);
}

static void load_device(const char *name, struct examine_device *device)
{
	size_t length;
	_cleanup_free_ char *image = slurp("examine", name, ".sb", &length);
	const char *bitmap = image + BITMAP_AT;
	uint64_t at = get_le64(image + 8);
	enum md_version version = at == 8   ? MD_VERSION_1_2
				  : at == 0 ? MD_VERSION_1_1
					    : MD_VERSION_1_0;
	struct fault fault = {0};

	assert_int_equal(length, BITMAP_AT + 512);
	if (get_le32(image + 16 + 4) == 0)
		version = MD_VERSION_0_90;
	memset(device, 0, sizeof(*device));
	device->path = "member";
	device->device_sectors = get_le64(image);
	/* Damage is told by the result, and the fields are there all the same. */
	(void)md_format(version)->decode(
		image + 16, at, device->device_sectors, &device->super, &fault);
	assert_int_equal(device->super.super_offset, at);
	device->bitmap.found = get_le32(bitmap) == 0x6d746962;
	device->bitmap.sync_sectors = get_le64(bitmap + 40);
	device->bitmap.chunk_sectors = get_le32(bitmap + 52) / 512;
}

static void check_examine(const char *name)
{
	_cleanup_free_ struct examine_device *device = malloc(sizeof(*device));
	_cleanup_free_ char *text = slurp("examine", name, ".text", NULL);
	_cleanup_free_ char *brief = slurp("examine", name, ".brief", NULL);
	_cleanup_free_ char *export = slurp("examine", name, ".export", NULL);
	struct show_options options = {.homehost = "uml", .verbose = true};
	struct text texts[3];

	load_device(name, device);
	for (unsigned i = 0; i < 3; i++)
		text_open(&texts[i]);
	options.out = texts[0].out;
	examine_text(device, &options);
	options.out = texts[1].out;
	examine_brief(device, 1, &options);
	examine_export(device, texts[2].out);

	assert_text(name, text, text_close(&texts[0]));
	assert_text(name, brief, text_close(&texts[1]));
	/* For a level without a name mdadm says "(null)"; we do not. */
	if (strstr(export, "(null)") == NULL)
		assert_text(name, export, text_close(&texts[2]));
	else
		text_close(&texts[2]);
	for (unsigned i = 0; i < 3; i++)
		free(texts[i].data);
}

/* Call @check for every golden NAME with @ending in @folder. */
static unsigned for_each(const char *folder, const char *ending, void (*check)(const char *name))
{
	char path[PATH_MAX], name[NAME_MAX + 1];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", GOLDEN, folder);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		size_t length = strlen(entry->d_name);

		if (length <= strlen(ending) ||
			strcmp(entry->d_name + length - strlen(ending), ending) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length - strlen(ending)), entry->d_name);
		check(name);
		count++;
	}
	closedir(dir);
	return count;
}

static void examine_prints_as_mdadm(void **state)
{
	assert_true(for_each("examine", ".sb", check_examine) >= 60);
}

static void spares_and_devices_are_listed_by_array(void **state)
{
	_cleanup_free_ struct examine_device *devices = calloc(3, sizeof(*devices));
	struct show_options options = {.verbose = true};
	_cleanup_free_ char *first = slurp("examine", "raid5.3", ".brief", NULL);
	_cleanup_free_ char *second = slurp("examine", "raid1.0", ".brief", NULL);
	_cleanup_free_ char *expected = NULL;
	struct text text;

	load_device("raid1.0", &devices[0]);
	load_device("raid5.2", &devices[1]);
	load_device("raid5.3", &devices[2]);
	devices[1].path = "a";
	devices[2].path = "b";
	text_open(&text);
	options.out = text.out;
	examine_brief(devices, 3, &options);
	*strrchr(first, '=') = '\0';
	assert_true(asprintf(&expected, "%s=a,b\n%s", first, second) > 0);
	assert_text("brief", expected, text_close(&text));
	free(text.data);
}

static void a_logical_block_size_is_shown(void **state)
{
	_cleanup_free_ struct examine_device *device = malloc(sizeof(*device));
	struct show_options options = {0};
	struct text text;
	json_t *json;

	load_device("raid1.0", device);
	json = examine_json(device, NULL);
	assert_true(json_is_null(json_object_get(json, "needs_kernel")));
	json_decref(json);

	device->super.logical_block_bytes = 512;
	text_open(&text);
	options.out = text.out;
	examine_text(device, &options);
	assert_non_null(strstr(text_close(&text),
		"     Block Size : logical block size 512; needs kernel >= 6.19\n"));
	free(text.data);
	json = examine_json(device, NULL);
	assert_string_equal(fact_string(json, "needs_kernel", ""), "6.19");
	assert_int_equal(fact_number(json, "logical_block_bytes"), 512);
	json_decref(json);
}

static void examine_json_has_the_facts(void **state)
{
	_cleanup_free_ struct examine_device *device = malloc(sizeof(*device));
	json_t *json;

	load_device("reshape.0", device);
	strcpy(device->super.name, "bad\xff");
	json = examine_json(device, "uml");
	assert_non_null(json);
	assert_string_equal(fact_string(json, "array_name", ""), "bad\\377");
	assert_string_equal(fact_string(json, "level", ""), "raid5");
	assert_string_equal(fact_string(json, "role", ""), "active");
	assert_string_equal(fact_string(json, "array_state", ""), "AAAA");
	assert_int_equal(fact_number(json, "array_bytes"), UINT64_C(70656) * 1024);
	assert_int_equal(fact_number(json, "new_data_offset_bytes"), 1664 * 512);
	assert_int_equal(fact_number(json_object_get(json, "reshape"), "delta_devices"), 1);
	assert_true(json_is_true(json_object_get(json, "checksum_correct")));
	assert_true(json_is_null(json_object_get(json, "unused_before_bytes")));
	json_decref(json);
}

static void a_partition_table_is_shown(void **state)
{
	uint8_t sector[512] = {0};
	struct text text;

	text_open(&text);
	assert_false(examine_table("dos.img", sector, text.out));
	sector[510] = 0x55;
	sector[511] = 0xaa;
	sector[446 + 4] = sector[462 + 4] = 0x83;
	put_le32(sector + 446 + 8, 2048);
	put_le32(sector + 446 + 12, 20480);
	put_le32(sector + 462 + 8, 22528);
	put_le32(sector + 462 + 12, 40960);
	assert_true(examine_table("dos.img", sector, text.out));
	/* mdadm 4.2 about a disk that sfdisk partitioned so. */
	assert_text("table",
		"dos.img:\n   MBR Magic : aa55\n"
		"Partition[0] :        20480 sectors at         2048 (type 83)\n"
		"Partition[1] :        40960 sectors at        22528 (type 83)\n",
		text_close(&text));
	free(text.data);
}

static json_t *load_reply(const char *name)
{
	_cleanup_free_ char *data = slurp("detail", name, ".json", NULL);
	json_t *reply = json_loads(data, 0, NULL);

	assert_non_null(reply);
	return reply;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The order of members in --export is nobody's promise. */
static void sort_lines(char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *lines[64], *rest = copy, *line;
	unsigned count = 0;

	while ((line = strsep(&rest, "\n")) != NULL && count < 64)
		lines[count++] = line;
	qsort(lines, count, sizeof(lines[0]), compare_lines);
	for (unsigned i = 0; i < count; i++)
		text += sprintf(text, "%s%s", i > 0 ? "\n" : "", lines[i]);
}

static char *render(const char *name, const char *form)
{
	struct show_options options = {.homehost = "uml"};
	json_t *reply = load_reply(name);
	struct text text;

	text_open(&text);
	options.out = text.out;
	options.verbose = strcmp(form, ".detail-brief-verbose") == 0;
	if (strcmp(form, ".detail") == 0)
		detail_text(reply, &options);
	else if (strcmp(form, ".detail-export") == 0)
		detail_export(reply, text.out);
	else if (strcmp(form, ".query") == 0)
		query_array(fact_string(reply, "node", ""), reply, text.out);
	else
		detail_brief(reply, &options);
	json_decref(reply);
	return text_close(&text);
}

static void check_detail(const char *name)
{
	static const char *const forms[] = {
		".detail", ".detail-brief", ".detail-brief-verbose", ".detail-export", ".query"};

	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		_cleanup_free_ char *expected = slurp("detail", name, forms[i], NULL);
		_cleanup_free_ char *actual = render(name, forms[i]);
		char *program = strstr(expected, "Use mdadm ");

		if (strcmp(forms[i], ".detail-export") == 0) {
			sort_lines(expected);
			sort_lines(actual);
		}
		if (program != NULL) { /* our own name there */
			*program = '\0';
			assert_memory_equal(expected, actual, strlen(expected));
			assert_string_equal(actual + strlen(expected),
				"Use strake --detail for more detail.\n");
			continue;
		}
		assert_text(name, expected, actual);
	}
}

static void detail_prints_as_mdadm(void **state)
{
	assert_true(for_each("detail", ".json", check_detail) >= 37);
}

static void check_health(const char *name)
{
	_cleanup_free_ char *expected = slurp("detail", name, ".test", NULL);
	json_t *reply = load_reply(name);

	if (detail_health(reply) != atoi(expected))
		fail_msg("%s: detail --test: %d, mdadm says %s", name, detail_health(reply),
			expected);
	json_decref(reply);
}

static void detail_test_is_as_mdadm(void **state)
{
	assert_true(for_each("detail", ".test", check_health) >= 26);
}

/*
 * The kernel reckons the time that is left from counts of its last measurement, which nobody shows:
 * only near to what the printed speed makes of it. Both become "finish=?".
 */
static void compare_finish(const char *name, char *expected, char *actual)
{
	char *a = strstr(expected, "finish="), *b = strstr(actual, "finish=");
	double difference;

	if (a == NULL || b == NULL)
		return;
	difference = strtod(a + 7, NULL) - strtod(b + 7, NULL);
	if (difference > 0.15 || difference < -0.15)
		fail_msg("%s: md says %.14s, we %.14s", name, a, b);
	memset(a + 7, '?', strcspn(a + 7, "m"));
	memset(b + 7, '?', strcspn(b + 7, "m"));
}

/* But for the first line, which there lists the levels of the kernel. */
static void check_status(const char *name)
{
	_cleanup_free_ char *expected = slurp("detail", name, ".mdstat", NULL);
	json_t *replies = json_array();
	struct text text;

	if (strncmp(name, "two", 3) == 0) {
		json_array_append_new(replies, load_reply("two7"));
		json_array_append_new(replies, load_reply("two"));
	} else {
		json_array_append_new(replies, load_reply(name));
	}
	text_open(&text);
	status_text(replies, text.out);
	json_decref(replies);
	compare_finish(name, expected, text_close(&text));
	assert_text(name, strchr(expected, '\n'), strchr(text.data, '\n'));
	assert_non_null(strstr(text.data, "Personalities : [linear] [raid0] [raid1] "));
	free(text.data);
}

static void status_prints_as_mdstat(void **state)
{
	assert_true(for_each("detail", ".json", check_status) >= 37);
}

static void a_broken_array_is_told(void **state)
{
	json_t *reply = load_reply("raid0-2");
	struct show_options options = {0};
	struct text text;

	assert_int_equal(detail_health(reply), 0);
	json_object_set_new(reply, "state", json_string("broken"));
	assert_int_equal(detail_health(reply), 2);
	text_open(&text);
	options.out = text.out;
	detail_text(reply, &options);
	assert_non_null(strstr(text_close(&text), "State : broken, FAILED \n"));
	free(text.data);
	json_decref(reply);
}

static void sizes_have_their_units(void **state)
{
	char text[FORMAT_SIZE_TEXT];

	assert_string_equal(format_size(5000 * 1024 - 1, text), "");
	assert_string_equal(format_size(5000 * 1024, text), " (4.88 MiB 5.12 MB)");
	assert_string_equal(format_size(UINT64_C(2) << 30, text), " (2.00 GiB 2.15 GB)");
	assert_string_equal(format_size(UINT64_C(2) << 40, text), " (2.00 TiB 2.20 TB)");
	assert_string_equal(format_size(UINT64_MAX, text), "");
	assert_string_equal(format_size_brief(45056 * 1024, true, text), "44.00MiB");
	assert_string_equal(format_size_brief(45056 * 1024, false, text), "46.14MB");
}

static void hostile_names_are_escaped(void **state)
{
	struct text text;

	text_open(&text);
	print_clean(text.out, "a\x1b[2Jb\n");
	assert_string_equal(text_close(&text), "a\\033[2Jb\\012");
	free(text.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examine_prints_as_mdadm),
		cmocka_unit_test(spares_and_devices_are_listed_by_array),
		cmocka_unit_test(a_logical_block_size_is_shown),
		cmocka_unit_test(examine_json_has_the_facts),
		cmocka_unit_test(a_partition_table_is_shown),
		cmocka_unit_test(detail_prints_as_mdadm),
		cmocka_unit_test(detail_test_is_as_mdadm),
		cmocka_unit_test(status_prints_as_mdstat),
		cmocka_unit_test(a_broken_array_is_told),
		cmocka_unit_test(sizes_have_their_units),
		cmocka_unit_test(hostile_names_are_escaped),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
