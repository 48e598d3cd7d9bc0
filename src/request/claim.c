/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim: reads and writes claims. Does not know which GPUs exist or who holds them. SECURITY: a
 * claim may come from an image; only a small set of harmless characters is accepted in it.
 */
#include "request/claim.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "formats/cdi/cdi.h"

#define SEPARATORS  ",;/"
#define LETTERS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS      "0123456789"
#define NAMES       LETTERS DIGITS "-:+."
#define MODEL_MAX   64u
#define PROFILE_MAX 32u
#define HINT        "Write 'any:2', 'share', 'mig:1g.10gb' or 'lease:ID', with constraints after it: 'any:2;model=H100'."

const char *const graft_claim_same_names[4] = { "", "nvlink", "numa", "pcie" };

static bool is_claim_word(const char *word)
{
	size_t length = strcspn(word, ":" SEPARATORS);

	if ((length == strlen("any") && strncmp(word, "any", length) == 0) ||
	    (length == strlen("share") && strncmp(word, "share", length) == 0))
		return true;
	return graft_starts_with(word, "mig:") || graft_starts_with(word, "lease:") ||
	       graft_starts_with(word, "named:");
}

bool graft_claim_is_in(const struct graft_strings *words)
{
	for (size_t i = 0; i < words->n; i++) {
		if (is_claim_word(words->items[i]))
			return true;
	}
	return false;
}

bool graft_lease_id_is_valid(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz234567") == GRAFT_LEASE_ID_SIZE &&
	       text[GRAFT_LEASE_ID_SIZE] == '\0';
}

static int fail_claim(const char *text, const char *why, struct graft_error *err)
{
	(void)graft_fail(err, GRAFT_INVALID, 0, "'%.100s': %s", text, why);
	return graft_with_hint(err, HINT);
}

static bool is_of_letters(const char *text, const char *letters, size_t max)
{
	size_t length = strlen(text);

	return length > 0 && length <= max && strspn(text, letters) == length;
}

/* Returns false unless `text` is a number from 1 to `max`, without a sign or leading zeros. */
static bool read_count(const char *text, uint32_t max, uint32_t *ret_count)
{
	uint32_t count = 0;

	if (text[0] < '1' || text[0] > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		count = count * 10 + (uint32_t)(*text - '0');
		if (count > max)
			return false;
	}
	*ret_count = count;
	return *text == '\0';
}

/* "40G", "500M", in MiB. */
static bool read_claim_memory(char *text, uint32_t *ret_mib)
{
	size_t length = strlen(text);
	char unit = '\0';

	if (length > 0)
		unit = text[length - 1];
	if (unit != 'G' && unit != 'M')
		return false;
	text[length - 1] = '\0';
	if (!read_count(text, unit == 'G' ? 1024 : 1024 * 1024, ret_mib))
		return false;
	*ret_mib *= unit == 'G' ? 1024u : 1u;
	return true;
}

/* "any", "any:2", "share:2"; `count` is what follows the colon, or NULL. */
static int read_number_of_gpus(enum graft_claim_kind kind, const char *count, struct graft_claim *claim,
			       struct graft_error *err)
{
	claim->kind = kind;
	return !count || read_count(count, GRAFT_CLAIM_COUNT_MAX, &claim->count)
		   ? 0
		   : fail_claim(count, "the number of GPUs must be 1 to 64", err);
}

/* "0", "GPU-...", "0000:1b:00.0", "0:1", "MIG-...", "all" */
static int name_device(const char *name, const char *letters, struct graft_arena *arena, struct graft_claim *claim,
		       struct graft_error *err)
{
	if (!is_of_letters(name, letters, 96))
		return fail_claim(name, "not the name of a GPU", err);
	return graft_arena_push_string(arena, &claim->names.items, &claim->names.n, name) ? 0 : graft_fail_memory(err);
}

static int read_head(char *piece, struct graft_arena *arena, struct graft_claim *claim, struct graft_error *err)
{
	char *rest = strchr(piece, ':'), *count;

	if (rest)
		*rest++ = '\0';
	claim->count = 1;
	if (strcmp(piece, "any") == 0)
		return read_number_of_gpus(GRAFT_CLAIM_ANY, rest, claim, err);
	if (strcmp(piece, "share") == 0)
		return read_number_of_gpus(GRAFT_CLAIM_SHARE, rest, claim, err);
	if (strcmp(piece, "lease") == 0 && rest) {
		claim->kind = GRAFT_CLAIM_LEASE;
		claim->count = 0;
		claim->lease = rest;
		return graft_lease_id_is_valid(rest) ? 0 : fail_claim(rest, "not the id of a lease", err);
	}
	if (strcmp(piece, "named") == 0 && rest) {
		claim->kind = GRAFT_CLAIM_NAMED;
		claim->count = 0;
		return name_device(rest, NAMES, arena, claim, err);
	}
	if (strcmp(piece, "mig") != 0 || !rest)
		return fail_claim(piece, "a list has either devices or one claim, not both", err);
	claim->kind = GRAFT_CLAIM_MIG;
	claim->profile = rest;
	count = strchr(rest, ':');
	if (count)
		*count++ = '\0';
	if (!is_of_letters(rest, LETTERS DIGITS ".+", PROFILE_MAX))
		return fail_claim(rest, "not a MIG profile", err);
	return !count || read_count(count, GRAFT_CLAIM_COUNT_MAX, &claim->count)
		   ? 0
		   : fail_claim(count, "the number of MIG devices must be 1 to 64", err);
}

bool graft_claim_read_span(const char *text, uint64_t *ret_ms)
{
	static const struct {
		char unit;
		uint64_t ms;
	} rows[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
	const uint64_t year = 366 * 86400000ull;
	uint64_t n = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && n <= year; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	for (size_t i = 0; i < GRAFT_COUNT(rows) && at > text; i++) {
		if (at[0] != rows[i].unit || at[1] != '\0' || n > year / rows[i].ms)
			continue;
		*ret_ms = n * rows[i].ms;
		return true;
	}
	return false;
}

static int read_same(const char *value, struct graft_claim *claim, struct graft_error *err)
{
	for (unsigned int i = GRAFT_SAME_NVLINK; i <= GRAFT_SAME_PCIE; i++) {
		if (strcmp(value, graft_claim_same_names[i]) == 0) {
			claim->same = (enum graft_claim_same)i;
			return 0;
		}
	}
	return fail_claim(value, "same= is nvlink, numa or pcie", err);
}

static int exclude(const char *value, struct graft_arena *arena, struct graft_claim *claim, struct graft_error *err)
{
	if (!is_of_letters(value, LETTERS DIGITS "-", 64))
		return fail_claim(value, "not= takes the index or the UUID of a GPU", err);
	return graft_arena_push_string(arena, &claim->excluded.items, &claim->excluded.n, value)
		   ? 0
		   : graft_fail_memory(err);
}

static int read_percent(const char *value, struct graft_claim *claim, struct graft_error *err)
{
	return read_count(value, 100, &claim->limit_percent)
		   ? 0
		   : fail_claim(value, "sm= takes a percentage, 1 to 100", err);
}

/* *excluding: a piece without a key continues the list of not=. */
static int read_constraint(char *piece, bool *excluding, struct graft_arena *arena, struct graft_claim *claim,
			   struct graft_error *err)
{
	bool share = claim->kind == GRAFT_CLAIM_SHARE;
	char *value = strchr(piece, '=');

	if ((share || claim->kind == GRAFT_CLAIM_MIG) && strcmp(piece, "spread") == 0) {
		claim->spread = true;
		return 0;
	}
	if (strcmp(piece, "sticky") == 0) {
		claim->sticky = true;
		return 0;
	}
	if (!value && *excluding && !is_claim_word(piece))
		return exclude(piece, arena, claim, err);
	if (!value)
		return fail_claim(piece, "a list has either devices or one claim, not both", err);
	*value++ = '\0';
	*excluding = strcmp(piece, "not") == 0;
	if (*excluding)
		return exclude(value, arena, claim, err);
	if (strcmp(piece, "model") == 0) {
		claim->model = value;
		return is_of_letters(value, LETTERS DIGITS " -._()", MODEL_MAX)
			   ? 0
			   : fail_claim(value, "model= takes a part of a GPU's name", err);
	}
	if (strcmp(piece, "mem>") == 0)
		return read_claim_memory(value, &claim->memory_mib)
			   ? 0
			   : fail_claim(value, "mem>= takes a size like 40G", err);
	if (strcmp(piece, "same") == 0)
		return read_same(value, claim, err);
	if (strcmp(piece, "wait") == 0) {
		claim->has_wait = graft_claim_read_span(value, &claim->wait_ms);
		return claim->has_wait ? 0 : fail_claim(value, "wait= takes a time like 90s, 30m or 8h", err);
	}
	if (share && strcmp(piece, "mem") == 0)
		return read_claim_memory(value, &claim->limit_mib)
			   ? 0
			   : fail_claim(value, "mem= takes a size like 8G", err);
	if (share && strcmp(piece, "sm") == 0)
		return read_percent(value, claim, err);
	return fail_claim(
	    piece,
	    share ? "unknown constraint; the constraints are model=, mem>=, same=, not=, wait=, sticky, mem=, sm= and "
		    "spread"
		  : "unknown constraint; the constraints are model=, mem>=, same=, not=, wait= and sticky",
	    err);
}

int graft_claim_parse(const char *text, struct graft_arena *arena, struct graft_claim *ret_claim,
		      struct graft_error *err)
{
	char *rest = graft_arena_strdup(arena, text), *piece;
	bool excluding = false;
	int rc;

	*ret_claim = (struct graft_claim){ .kind = GRAFT_CLAIM_ANY };
	if (!rest)
		return graft_fail_memory(err);
	rc = read_head(strsep(&rest, SEPARATORS), arena, ret_claim, err);
	while (rc == 0 && rest) {
		piece = strsep(&rest, SEPARATORS);
		if (ret_claim->kind == GRAFT_CLAIM_NAMED)
			rc = name_device(piece, NAMES, arena, ret_claim, err);
		else
			rc = ret_claim->kind == GRAFT_CLAIM_LEASE
				 ? fail_claim(text, "lease:ID takes no constraints", err)
				 : read_constraint(piece, &excluding, arena, ret_claim, err);
	}
	return rc;
}

/*
 * Whether a CDI device may be a GPU: by its class, "gpu" or "gpu.coherent", or because nothing is
 * known of its class, though it is one of NVIDIA's.
 */
static bool may_be_gpu(const struct graft_cdi_name *name)
{
	static const char *const others[] = { "gdrcopy", "gds", "imex-channel", "lease", "mofed", "nvswitch" };

	if (strcmp(name->class_, "gpu") == 0 || graft_starts_with(name->class_, "gpu."))
		return true;
	return (strcmp(name->vendor, "nvidia.com") == 0 || graft_ends_with(name->vendor, ".nvidia.com")) &&
	       !graft_is_in(others, GRAFT_COUNT(others), name->class_);
}

/*
 * Finds the name of a GPU in a word; NULL: it is no GPU. SECURITY: only a qualified CDI name has a
 * class; to selection, "0000:1b:00/gpu=5" is a PCI address.
 */
static int find_gpu_name(const char *word, struct graft_arena *arena, const char **ret_name, struct graft_error *err)
{
	struct graft_cdi_name cdi = { .vendor = "runtime.nvidia.com", .class_ = "gpu", .device = word };
	const char *name;

	if (graft_cdi_is_qualified(word) && graft_cdi_parse_name(word, arena, &cdi, err) < 0)
		return -1;
	name = may_be_gpu(&cdi) ? cdi.device : NULL;
	if (name && strcmp(cdi.vendor, "runtime.nvidia.com") == 0 &&
	    (strcmp(name, "none") == 0 || strcmp(name, "void") == 0))
		name = NULL;
	/* Names of the strategy type-index: "gpu0", "mig0:1". */
	if (name && (graft_starts_with(name, "gpu") || graft_starts_with(name, "mig")) && name[3] >= '0' &&
	    name[3] <= '9')
		name += 3;
	*ret_name = name;
	return 0;
}

int graft_claim_of_names(const struct graft_strings *words, struct graft_arena *arena, struct graft_claim *ret_claim,
			 bool *ret_none, struct graft_error *err)
{
	*ret_claim = (struct graft_claim){ .kind = GRAFT_CLAIM_NAMED };
	for (size_t i = 0; i < words->n; i++) {
		const char *name;

		if (find_gpu_name(words->items[i], arena, &name, err) < 0 ||
		    (name && name_device(name, NAMES "/", arena, ret_claim, err) < 0))
			return -1;
	}
	*ret_none = ret_claim->names.n == 0;
	return 0;
}

int graft_claim_read(const struct graft_strings *words, struct graft_arena *arena, struct graft_claim *ret_claim,
		     struct graft_error *err)
{
	struct graft_buffer text = { .max = (size_t)64 * 1024 };
	int rc;

	for (size_t i = 0; i < words->n; i++)
		graft_buffer_printf(&text, "%s%s", i > 0 ? "," : "", words->items[i]);
	rc = graft_buffer_failed(&text) ? graft_fail_memory(err)
					: graft_claim_parse(graft_buffer_text(&text), arena, ret_claim, err);
	graft_buffer_done(&text);
	return rc;
}

void graft_claim_write(const struct graft_claim *claim, struct graft_buffer *out)
{
	switch (claim->kind) {
	case GRAFT_CLAIM_ANY:
		graft_buffer_printf(out, "any:%u", claim->count);
		break;
	case GRAFT_CLAIM_MIG:
		graft_buffer_printf(out, "mig:%s:%u", claim->profile, claim->count);
		break;
	case GRAFT_CLAIM_SHARE:
		graft_buffer_printf(out, "share:%u", claim->count);
		break;
	case GRAFT_CLAIM_LEASE:
		graft_buffer_printf(out, "lease:%s", claim->lease);
		break;
	case GRAFT_CLAIM_NAMED:
		for (size_t i = 0; i < claim->names.n; i++)
			graft_buffer_printf(out, "%s%s", i == 0 ? "named:" : ";", claim->names.items[i]);
		break;
	}
	if (claim->limit_mib > 0)
		graft_buffer_printf(out, ",mem=%uM", claim->limit_mib);
	if (claim->limit_percent > 0)
		graft_buffer_printf(out, ",sm=%u", claim->limit_percent);
	graft_buffer_string(out, claim->spread ? ",spread" : "");
	graft_buffer_string(out, claim->sticky ? ",sticky" : "");
	if (claim->model)
		graft_buffer_printf(out, ",model=%s", claim->model);
	if (claim->memory_mib > 0)
		graft_buffer_printf(out, ",mem>=%uM", claim->memory_mib);
	if (claim->same != GRAFT_SAME_NOTHING)
		graft_buffer_printf(out, ",same=%s", graft_claim_same_names[claim->same]);
	for (size_t i = 0; i < claim->excluded.n; i++)
		graft_buffer_printf(out, "%s%s", i > 0 ? "," : ",not=", claim->excluded.items[i]);
}
