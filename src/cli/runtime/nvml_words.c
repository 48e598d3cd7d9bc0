/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_words: parses the command line of graft-nvml. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "cli/runtime/nvml_program.h"

static bool parse_nvml_number(const char *word, unsigned int max, unsigned int *ret_number)
{
	unsigned long number;
	char *end;

	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	number = strtoul(word, &end, 10);
	if (errno != 0 || *end != '\0' || number > max)
		return false;
	*ret_number = (unsigned int)number;
	return true;
}

bool runtime_nvml_parse(int argc, const char *const *argv, struct graft_nvml_question *ret_question, pid_t *ret_parent)
{
	unsigned int parent, facts, cuda, uid, gid;

	if (argc != RUNTIME_NVML_WORDS || argv[RUNTIME_NVML_ROOT][0] != '/' || argv[RUNTIME_NVML_LIBRARY][0] != '/' ||
	    !parse_nvml_number(argv[RUNTIME_NVML_PARENT], INT_MAX, &parent) ||
	    !parse_nvml_number(argv[RUNTIME_NVML_FACTS], UINT_MAX, &facts) ||
	    !parse_nvml_number(argv[RUNTIME_NVML_CUDA], 1, &cuda) ||
	    !parse_nvml_number(argv[RUNTIME_NVML_UID], UINT_MAX, &uid) ||
	    !parse_nvml_number(argv[RUNTIME_NVML_GID], UINT_MAX, &gid))
		return false;
	*ret_question = (struct graft_nvml_question){
		.root = argv[RUNTIME_NVML_ROOT],
		.library = argv[RUNTIME_NVML_LIBRARY],
		.facts = facts,
		.cuda = cuda == 1,
		.uid = (uid_t)uid,
		.gid = (gid_t)gid,
	};
	*ret_parent = (pid_t)parent;
	return true;
}
