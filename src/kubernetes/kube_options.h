/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_options: how the options of programs for Kubernetes are read, and the rows of their tables.
 * Only for src/kubernetes.
 */
#ifndef GRAFT_KUBERNETES_KUBE_OPTIONS_H
#define GRAFT_KUBERNETES_KUBE_OPTIONS_H

#include <stddef.h>

#include "base/option_rows.h"
#include "kubernetes/kube_config.h"

/*
 * Parsers of one option's value, for `parse` of a row. The target is what graft_kube_configure()
 * uses, so only the commands that are given to it may have such rows.
 */

/*
 * One of the row's `values`, as its index. An empty value, which manifests pass for unset ones,
 * changes nothing.
 */
int kube_parse_word(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
/* Several of them, separated by commas, as bits; the first use replaces the config file's value. */
int kube_parse_bits(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
/* Texts separated by commas; `extra` is the offset of their count. */
int kube_parse_list(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
/* IMEX channels: none, or 0. */
int kube_parse_channels(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
/* A text; empty: no change. */
int kube_parse_filled(void *target, const struct graft_option *option, const char *value, struct graft_error *err);
/* A duration as text; empty: no change. */
int kube_parse_interval(void *target, const struct graft_option *option, const char *value, struct graft_error *err);

/* Strategies separated by commas; each further use adds to them. */
int kube_parse_fallbacks(void *target, const struct graft_option *option, const char *value, struct graft_error *err);

/* clang-format off */
#define AT(member)  .offset = offsetof(struct graft_kube_config, member)
#define DIRECTORY   .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_filled, .value_name = "DIR"
#define WORD        .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_word, .value_name = "WORD"
#define LIST(count) .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_list, .value_name = "LIST", \
	.extra = &(const size_t){ offsetof(struct graft_kube_config, count) }

/* The node's label chooses the config file: rows of every program that has one. */
#define KUBE_CHOICE_OPTIONS(label_default)                                                                                        \
	{ .name = "node-label", TEXT, AT(choice.label), .value_name = "LABEL", ENV("NODE_LABEL"),                               \
	  .help = "Node label whose value names the config file (default " label_default ")" },                          \
	{ .name = "config-file-srcdir", TEXT, AT(choice.folder), .value_name = "DIR", ENV("CONFIG_FILE_SRCDIR"),                \
	  .help = "Directory of the config files that the label can name" },                                                    \
	{ .name = "default-config", TEXT, AT(choice.default_config), .value_name = "NAME", ENV("DEFAULT_CONFIG"),               \
	  .help = "Config file for a node without the label" },                                                                 \
	{ .name = "fallback-strategies", .argument = GRAFT_OPTION_REQUIRED, .parse = kube_parse_fallbacks, .value_name = "LIST", \
	  AT(choice.fallbacks), ENV("FALLBACK_STRATEGIES"), WORDS("named", "single", "empty"),                                  \
	  .help = "What to use without the label and --default-config: named (the file 'default'), single (the only file), empty (no file); the first possible one applies" }
/* Which node this is, and where the API server is. */
#define KUBE_NODE_OPTIONS                                                                                                         \
	{ .name = "node-name", TEXT, AT(api.node_name), .value_name = "NAME", ENV("NODE_NAME"), .help = "Name of this node" },  \
	{ .name = "kubeconfig", TEXT, AT(api.kubeconfig), .value_name = "FILE", ENV("KUBECONFIG"),                              \
	  .help = "How to reach the API server; empty: as a pod in the cluster" }
/* clang-format on */

#endif
