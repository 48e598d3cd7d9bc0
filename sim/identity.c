/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: FNV-1a over the names, extended by splitmix64. The values need to be stable and
 * distinct, not secret.
 */
#include "identity.h"

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t feed(uint64_t hash, const char *s)
{
	for (; *s != '\0'; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
	return (hash ^ 0xff) * 0x100000001b3u; /* so that "ab"+"c" and "a"+"bc" differ */
}

uint64_t sim_hash(const char *host, const char *kind, uint64_t number)
{
	return mix(feed(feed(0xcbf29ce484222325u, host), kind) + mix(number));
}

const char *sim_uuid(struct graft_arena *arena, const char *prefix, const char *host, const char *kind, uint64_t number)
{
	uint64_t high = sim_hash(host, kind, number), low = mix(high);

	return graft_arena_printf(arena, "%s%08x-%04x-%04x-%04x-%012llx", prefix, (unsigned int)(high >> 32),
				  (unsigned int)(high >> 16) & 0xffffu, (unsigned int)high & 0xffffu,
				  (unsigned int)(low >> 48), (unsigned long long)(low & 0xffffffffffffu));
}
