/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_options: the options of an option string (SPEC libnvidia-container 2.4), separated by spaces
 * and matched exactly.
 */
#include <string.h>

#include "abi/abi.h"

static bool is_option_word(const struct abi_option *option, const char *word, size_t length)
{
	size_t own = strlen(option->word);

	return option->parse ? length >= own && strncmp(word, option->word, own) == 0
			     : length == own && memcmp(word, option->word, own) == 0;
}

static int use_option_row(const struct abi_option *option, const char *word, size_t length, void *target,
			  struct graft_error *err)
{
	char *member = (char *)target + option->offset;
	char value[NVC_ARG_MAX];

	if (option->parse) {
		size_t name = strlen(option->word);

		memcpy(value, word + name, length - name);
		value[length - name] = '\0';
		return option->parse(target, value, err);
	}
	if (option->bit != 0)
		*(uint32_t *)(void *)member |= option->bit;
	else
		*(bool *)member = true;
	return 0;
}

int abi_options(const struct abi_option *options, size_t n_options, const char *text, void *target,
		struct graft_error *err)
{
	if (strlen(text) >= NVC_ARG_MAX)
		return graft_fail(err, GRAFT_INVALID, 0, "too many options");
	for (const char *word = text; *word != '\0';) {
		size_t length = strcspn(word, " "), i = 0;

		while (length > 0 && i < n_options && !is_option_word(&options[i], word, length))
			i++;
		if (length > 0 && i == n_options)
			return graft_fail(err, GRAFT_INVALID, 0, "invalid option: %.*s", (int)length, word);
		if (length > 0 && use_option_row(&options[i], word, length, target, err) < 0)
			return -1;
		word += length + (word[length] == ' ');
	}
	return 0;
}

bool abi_is_empty(const char *text)
{
	return text && text[0] == '\0';
}
