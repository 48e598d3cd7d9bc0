/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_config: the settings, their defaults and rules, and their JSON form. Knows neither command
 * line nor file.
 */
#include "kubernetes/kube_config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "kubernetes/kube_tables.h"

#define NAME_MAX_LENGTH 63 /* of a resource name, with its prefix */

const char *const graft_kube_mig_strategies[] = { "none", "single", "mixed" };
const char *const graft_kube_list_strategies[] = { "envvar", "volume-mounts", "cdi-annotations", "cdi-cri" };
const char *const graft_kube_health_sources[] = { "kmsg", "nvml", "none" };
const char *const graft_kube_id_strategies[] = { "uuid", "index" };
const char *const graft_kube_policies[] = { "distributed", "packed", "distinct" };
const char *const graft_kube_discoveries[] = { "auto", "nvml", "tegra" };
const char *const graft_kube_sharing_strategies[] = { "none", "time-slicing", "mps" };

/* --- tables --- */

/* clang-format off */
#define ROW(S, key, what, member) .name = key, .kind = GRAFT_FIELD_##what, .offset = offsetof(struct S, member)
#define MORE(S, count)            .count_offset = offsetof(struct S, count)
#define WORDS(list)               .enum_names = list, .n_enum_names = GRAFT_COUNT(list)
#define ALWAYS                    .required = true

static const struct graft_field plugin_fields[] = {
	{ ROW(graft_kube_plugin_flags, "passDeviceSpecs", BOOL, pass_device_specs), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "deviceListStrategy", FLAGS, device_list_strategy), ALWAYS,
	  WORDS(graft_kube_list_strategies) },
	{ ROW(graft_kube_plugin_flags, "deviceIDStrategy", ENUM, device_id_strategy), ALWAYS,
	  WORDS(graft_kube_id_strategies) },
	{ ROW(graft_kube_plugin_flags, "cdiAnnotationPrefix", STRING, cdi_annotation_prefix), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "nvidiaCTKPath", STRING, cdi_hook_path), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "containerDriverRoot", STRING, container_driver_root), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "sharedDevicesAllocationPolicy", ENUM, sharing_policy), ALWAYS,
	  WORDS(graft_kube_policies) },
	{ ROW(graft_kube_plugin_flags, "kubeletSocket", STRING, kubelet_socket), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "pluginRegistry", STRING, registry), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "listen", STRING, listen), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "cdiFeatureFlags", STRINGS, cdi_feature_flags),
	  MORE(graft_kube_plugin_flags, n_cdi_feature_flags) },
	{ ROW(graft_kube_plugin_flags, "cdiDisableHooks", STRINGS, cdi_disabled_hooks),
	  MORE(graft_kube_plugin_flags, n_cdi_disabled_hooks) },
	{ ROW(graft_kube_plugin_flags, "cdiLateMounts", BOOL, cdi_late_mounts) },
	{ ROW(graft_kube_plugin_flags, "respectLeases", BOOL, respect_leases) },
	{ ROW(graft_kube_plugin_flags, "health", FLAGS, health_sources), ALWAYS, WORDS(graft_kube_health_sources) },
	{ ROW(graft_kube_plugin_flags, "disableHealthChecks", STRING, disable_health_checks), ALWAYS },
	{ ROW(graft_kube_plugin_flags, "enableHealthChecks", STRING, enable_health_checks), ALWAYS },
};
static const struct graft_field gfd_fields[] = {
	{ ROW(graft_kube_gfd_flags, "oneshot", BOOL, oneshot), ALWAYS },
	{ ROW(graft_kube_gfd_flags, "noTimestamp", BOOL, no_timestamp), ALWAYS },
	{ ROW(graft_kube_gfd_flags, "sleepInterval", STRING, sleep_interval), ALWAYS },
	{ ROW(graft_kube_gfd_flags, "outputFile", STRING, output_file), ALWAYS },
	{ ROW(graft_kube_gfd_flags, "machineTypeFile", STRING, machine_type_file), ALWAYS },
};
static const struct graft_record plugin_record = { "plugin", sizeof(struct graft_kube_plugin_flags), plugin_fields,
						   GRAFT_COUNT(plugin_fields) };
static const struct graft_record gfd_record = { "gfd", sizeof(struct graft_kube_gfd_flags), gfd_fields,
						GRAFT_COUNT(gfd_fields) };
static const struct graft_field flag_fields[] = {
	{ ROW(graft_kube_flags, "migStrategy", ENUM, mig_strategy), ALWAYS, WORDS(graft_kube_mig_strategies) },
	{ ROW(graft_kube_flags, "failOnInitError", BOOL, fail_on_init_error), ALWAYS },
	{ ROW(graft_kube_flags, "mpsRoot", STRING, mps_root), ALWAYS },
	{ ROW(graft_kube_flags, "nvidiaDriverRoot", STRING, driver_root), ALWAYS },
	{ ROW(graft_kube_flags, "nvidiaDevRoot", STRING, dev_root), ALWAYS },
	{ ROW(graft_kube_flags, "gdrcopyEnabled", BOOL, gdrcopy), ALWAYS },
	{ ROW(graft_kube_flags, "gdsEnabled", BOOL, gds), ALWAYS },
	{ ROW(graft_kube_flags, "mofedEnabled", BOOL, mofed), ALWAYS },
	{ ROW(graft_kube_flags, "useNodeFeatureAPI", BOOL, use_node_feature_api), ALWAYS },
	{ ROW(graft_kube_flags, "deviceDiscoveryStrategy", ENUM, discovery), ALWAYS, WORDS(graft_kube_discoveries) },
	{ ROW(graft_kube_flags, "plugin", RECORD, plugin), .record = &plugin_record },
	{ ROW(graft_kube_flags, "gfd", RECORD, gfd), .record = &gfd_record },
};
static const struct graft_field shared_resource_fields[] = {
	{ ROW(graft_kube_shared_resource, "name", STRING, name), ALWAYS },
	{ ROW(graft_kube_shared_resource, "rename", STRING, rename) },
	{ ROW(graft_kube_shared_resource, "replicas", U32, replicas), ALWAYS },
	{ ROW(graft_kube_shared_resource, "devices", STRINGS, devices), MORE(graft_kube_shared_resource, n_devices) },
	{ ROW(graft_kube_shared_resource, "firstDevices", U32, n_first) },
};
const struct graft_record kube_shared_resource_record = { "resource", sizeof(struct graft_kube_shared_resource),
							  shared_resource_fields, GRAFT_COUNT(shared_resource_fields) };
static const struct graft_field replication_fields[] = {
	{ ROW(graft_kube_replication, "renameByDefault", BOOL, rename_by_default), ALWAYS },
	{ ROW(graft_kube_replication, "failRequestsGreaterThanOne", BOOL, fail_requests_greater_than_one), ALWAYS },
	{ ROW(graft_kube_replication, "resources", RECORDS, resources), MORE(graft_kube_replication, n_resources),
	  .record = &kube_shared_resource_record },
};
const struct graft_record kube_replication_record = { "replication", sizeof(struct graft_kube_replication),
						      replication_fields, GRAFT_COUNT(replication_fields) };
static const struct graft_field sharing_fields[] = {
	{ ROW(graft_kube_sharing, "timeSlicing", RECORD, time_slicing), .record = &kube_replication_record },
	{ ROW(graft_kube_sharing, "mps", RECORD, mps), .record = &kube_replication_record },
};
const struct graft_record kube_sharing_record = { "sharing", sizeof(struct graft_kube_sharing), sharing_fields,
						  GRAFT_COUNT(sharing_fields) };
static const struct graft_field imex_fields[] = {
	/* Without words a set is a list of numbers. */
	{ ROW(graft_kube_imex, "channelIDs", FLAGS, channels), ALWAYS },
	{ ROW(graft_kube_imex, "required", BOOL, required), ALWAYS },
};
static const struct graft_record imex_record = { "imex", sizeof(struct graft_kube_imex), imex_fields,
						 GRAFT_COUNT(imex_fields) };
const struct graft_record kube_flags_record = { "flags", sizeof(struct graft_kube_flags), flag_fields,
						GRAFT_COUNT(flag_fields) };
static const struct graft_field config_fields[] = {
	{ ROW(graft_kube_config, "version", STRING, version), ALWAYS },
	{ ROW(graft_kube_config, "flags", RECORD, flags), .record = &kube_flags_record },
	{ ROW(graft_kube_config, "sharing", RECORD, sharing), .record = &kube_sharing_record },
	{ ROW(graft_kube_config, "imex", RECORD, imex), .record = &imex_record },
};
const struct graft_record kube_config_record = { "config", sizeof(struct graft_kube_config), config_fields,
						 GRAFT_COUNT(config_fields) };
/* clang-format on */

/*
 * A kind of sharing without resources is an error in a file, so only those in use are written, each
 * with every key.
 */
void graft_kube_config_write(const struct graft_kube_config *config, struct graft_buffer *out)
{
	struct graft_field sections[GRAFT_COUNT(sharing_fields)], fields[GRAFT_COUNT(config_fields)];
	struct graft_record sharing = kube_sharing_record, record = kube_config_record;

	sharing.fields = sections;
	sharing.n_fields = 0;
	if (config->sharing.time_slicing.n_resources > 0)
		sections[sharing.n_fields++] = sharing_fields[0];
	if (config->sharing.mps.n_resources > 0)
		sections[sharing.n_fields++] = sharing_fields[1];
	memcpy(fields, config_fields, sizeof(fields));
	for (size_t i = 0; i < GRAFT_COUNT(fields); i++) {
		if (fields[i].record == &kube_sharing_record)
			fields[i].record = &sharing;
	}
	record.fields = fields;
	graft_record_write(&record, config, out);
}

/* --- defaults --- */

void graft_kube_config_default(struct graft_kube_config *config)
{
	*config = (struct graft_kube_config){
		.version = "v1",
		.flags = {
			.fail_on_init_error = true,
			.driver_root = "/",
			.dev_root = "",
			.mps_root = "",
			.use_node_feature_api = true,
			.plugin = {
				.device_list_strategy = GRAFT_KUBE_LIST_ENVVAR,
				.cdi_annotation_prefix = "cdi.k8s.io/",
				.cdi_hook_path = "/usr/bin/nvidia-ctk",
				.container_driver_root = "/driver-root",
				.kubelet_socket = "/var/lib/kubelet/device-plugins/kubelet.sock",
				.registry = "/var/lib/kubelet/plugins_registry",
				.listen = "",
				.state_folder = "/run/graft",
				.health_sources = GRAFT_KUBE_HEALTH_KMSG,
				.disable_health_checks = "",
				.enable_health_checks = "",
			},
			.gfd = {
				.sleep_interval = "60s",
				.output_file = "/etc/kubernetes/node-feature-discovery/features.d/gfd",
				.machine_type_file = "/sys/class/dmi/id/product_name",
			},
		},
		.api = {
			.kubeconfig = "",
			.namespace_ = "default",
			.node_name = "",
			.pod_name = "",
			.qps = 5,
			.burst = 10,
		},
		.choice = { .label = "", .folder = "", .default_config = "", .fallbacks = "" },
		.manager = {
			.send_signal = true,
			.destination = "",
			.process = "nvidia-device-plugin",
			.signal = SIGHUP,
		},
		.config_file = "",
		.clear_health = "",
	};
}

/* --- words --- */

int kube_find_word(const char *const *words, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], text) == 0)
			return (int)i;
	}
	return -1;
}

const char *kube_list_words(const char *const *words, size_t n, char *buffer, size_t size)
{
	size_t at = 0;

	buffer[0] = '\0';
	for (size_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(buffer + at, size - at, "%s%s", i > 0 ? ", " : "", words[i]);
	return buffer;
}

size_t kube_take_item(const char **list, const char **ret_item)
{
	static const char blanks[] = " \t\r\n";
	const char *item = *list + strspn(*list, blanks);
	size_t length = strcspn(item, ",");

	*list = item + length + (item[length] == ',');
	while (length > 0 && strchr(blanks, item[length - 1]))
		length--;
	*ret_item = item;
	return length;
}

const char *kube_read_bits(const char *text, const char *const *words, size_t n, struct graft_arena *arena,
			   uint32_t *ret_bits)
{
	while (*text != '\0') {
		const char *item;
		size_t length = kube_take_item(&text, &item);
		const char *word = graft_arena_strndup(arena, item, length);
		int bit = word ? kube_find_word(words, n, word) : -1;

		if (bit >= 0)
			*ret_bits |= 1u << bit;
		else if (length > 0)
			return word ? word : "";
	}
	return NULL;
}

bool kube_is_device_word(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	if (graft_starts_with(text, "GPU-") || graft_starts_with(text, "MIG-"))
		return true;
	if (digits == 0 || text[digits] == '\0')
		return digits > 0;
	return text[digits] == ':' && text[digits + 1] != '\0' &&
	       text[digits + 1 + strspn(text + digits + 1, "0123456789")] == '\0';
}

const char *kube_full_name(const char *name, struct graft_arena *arena)
{
	if (graft_starts_with(name, GRAFT_KUBE_PREFIX))
		return graft_arena_strdup(arena, name);
	return graft_arena_printf(arena, "%s%s", GRAFT_KUBE_PREFIX, name);
}

/* A DNS subdomain: labels of lower-case letters, digits and inner dashes, separated by dots. */
static bool is_subdomain(const char *text)
{
	static const char inner[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	for (;;) {
		size_t length = strspn(text, inner);

		if (length == 0 || text[0] == '-' || text[length - 1] == '-')
			return false;
		if (text[length] == '\0')
			return true;
		if (text[length] != '.')
			return false;
		text += length + 1;
	}
}

int graft_kube_check_resource(const char *name, struct graft_error *err)
{
	if (strlen(name) > NAME_MAX_LENGTH)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "fully-qualified resource name must be %d characters or less: %.80s", NAME_MAX_LENGTH,
				  name);
	if (!graft_starts_with(name, GRAFT_KUBE_PREFIX) || !is_subdomain(name + strlen(GRAFT_KUBE_PREFIX)))
		return graft_fail(err, GRAFT_INVALID, 0,
				  "incorrect format for resource name '%.80s': after '" GRAFT_KUBE_PREFIX
				  "' it consists of lower-case letters, digits, '-' and '.', and begins and ends "
				  "with a letter or digit",
				  name);
	return 0;
}

/* --- durations --- */

/* Returns the nanoseconds of the unit that a text begins with, and its length; 0 for none. */
static int64_t read_unit(const char *text, size_t *ret_length)
{
	static const struct {
		const char *word;
		int64_t ns;
	} units[] = {
		{ "ns", 1 },       { "us", 1000 },      { "\xc2\xb5s", 1000 }, { "\xce\xbcs", 1000 },
		{ "ms", 1000000 }, { "s", 1000000000 }, { "m", 60000000000 },  { "h", 3600000000000 },
	};

	for (size_t i = 0; i < GRAFT_COUNT(units); i++) {
		if (graft_starts_with(text, units[i].word)) {
			*ret_length = strlen(units[i].word);
			return units[i].ns;
		}
	}
	return 0;
}

/* Reads digits; false if there are too many. */
static bool read_duration_digits(const char **text, int64_t *ret_value)
{
	*ret_value = 0;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		if (__builtin_mul_overflow(*ret_value, (int64_t)10, ret_value) ||
		    __builtin_add_overflow(*ret_value, (int64_t)(**text - '0'), ret_value))
			return false;
	}
	return true;
}

/* One number with its unit: "1.5h". */
static bool read_duration_part(const char **text, int64_t *total)
{
	const char *begin = *text;
	int64_t whole, unit, fraction = 0, scale = 1;
	size_t digits, length;

	if (!read_duration_digits(text, &whole))
		return false;
	digits = (size_t)(*text - begin);
	if (**text == '.') {
		const char *at = ++*text;

		*text += strspn(*text, "0123456789");
		digits += (size_t)(*text - at);
		for (; at < *text && scale < 1000000000; at++) {
			fraction = fraction * 10 + (*at - '0');
			scale *= 10;
		}
	}
	unit = read_unit(*text, &length);
	if (digits == 0 || unit == 0 || __builtin_mul_overflow(whole, unit, &whole) ||
	    __builtin_add_overflow(*total, whole, total) ||
	    __builtin_add_overflow(*total, (int64_t)((__int128)fraction * unit / scale), total))
		return false;
	*text += length;
	return true;
}

bool graft_kube_parse_duration(const char *text, int64_t *ret_ns)
{
	const char *at = text;
	int64_t total = 0;

	if (strcmp(text, "infinite") == 0) {
		*ret_ns = -1;
		return true;
	}
	if (*at != '\0' && read_duration_digits(&at, ret_ns) && *at == '\0')
		return true;
	at = text + (text[0] == '+');
	if (*at == '\0')
		return false;
	while (*at != '\0') {
		if (!read_duration_part(&at, &total))
			return false;
	}
	*ret_ns = total;
	return true;
}

/* --- rules --- */

const struct graft_kube_replication *graft_kube_replication(const struct graft_kube_config *config,
							    enum graft_kube_sharing_strategy *ret_strategy)
{
	const struct graft_kube_sharing *sharing = &config->sharing;

	*ret_strategy = GRAFT_KUBE_NOT_SHARED;
	if (sharing->mps.n_resources > 0) {
		*ret_strategy = GRAFT_KUBE_MPS;
		return &sharing->mps;
	}
	if (sharing->time_slicing.n_resources > 0) {
		*ret_strategy = GRAFT_KUBE_TIME_SLICING;
		return &sharing->time_slicing;
	}
	return NULL;
}

int graft_kube_sharing_check(const struct graft_kube_config *config, struct graft_error *err)
{
	enum graft_kube_sharing_strategy sharing;

	(void)graft_kube_replication(config, &sharing);
	if (sharing == GRAFT_KUBE_MPS && config->flags.mig_strategy == GRAFT_KUBE_MIG_MIXED)
		return graft_fail(err, GRAFT_INVALID, 0, "using --mig-strategy=mixed is not supported with MPS");
	return 0;
}

int graft_kube_config_check(const struct graft_kube_config *config, struct graft_error *err)
{
	const struct graft_kube_flags *flags = &config->flags;
	enum graft_kube_sharing_strategy sharing;

	(void)graft_kube_replication(config, &sharing);
	if ((flags->plugin.device_list_strategy & GRAFT_KUBE_LIST_CDI) != 0 &&
	    flags->discovery == GRAFT_KUBE_DISCOVERY_TEGRA)
		return graft_fail(err, GRAFT_INVALID, 0, KUBE_CDI_NEEDS_NVML);
	if ((flags->plugin.health_sources & GRAFT_KUBE_HEALTH_NONE) != 0 &&
	    flags->plugin.health_sources != GRAFT_KUBE_HEALTH_NONE)
		return graft_fail(err, GRAFT_INVALID, 0,
				  "invalid --health option: none cannot be combined with kmsg or nvml");
	if (graft_kube_sharing_check(config, err) < 0)
		return -1;
	if (sharing == GRAFT_KUBE_MPS && flags->mps_root[0] == '\0')
		return graft_fail(err, GRAFT_INVALID, 0, "using MPS requires --mps-root to be specified");
	return 0;
}
