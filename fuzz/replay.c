/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over the files of the folders named as arguments: the corpus as a test. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "util/cleanup.h"

#define INPUT_MAX 65536

static void cleanup_closedirp(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

static int replay_file(const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	_cleanup_free_ uint8_t *data = malloc(INPUT_MAX);
	size_t size;

	if (file == NULL || data == NULL) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, INPUT_MAX, file);
	/* A copy of just this size, so that a read behind the end is seen. */
	data = realloc(data, size > 0 ? size : 1);
	if (data == NULL)
		return -1;
	printf("%s: %zu bytes\n", path, size);
	fflush(stdout); /* the last line names the file that crashes */
	return LLVMFuzzerTestOneInput(data, size);
}

/* Returns how many files were run, or -1. */
static int replay_folder(const char *path)
{
	_cleanup_(cleanup_closedirp) DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	if (dir == NULL) {
		perror(path);
		return -1;
	}
	while ((entry = readdir(dir)) != NULL) {
		char file[4096];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (replay_file(file) != 0)
			return -1;
		count++;
	}
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = replay_folder(argv[i]);

		if (count < 0)
			return 1;
		total += count;
	}
	printf("%d inputs\n", total);
	return total > 0 ? 0 : 1;
}
