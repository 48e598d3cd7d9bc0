/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static_heap: malloc(3) and its kin for the programs that are linked with musl. Most run for a
 * few milliseconds, allocate a few hundred blocks and end with execve() or exit. Memory is
 * therefore taken from the end of one mapping, and only the newest block and blocks of the size
 * that arenas use are reused. musl's own malloc returns memory to the kernel with every group of
 * free blocks, and the resulting page faults and system calls were a quarter of the cost of a
 * container's start (docs/decisions/0020-musl.md). Blocks of SHARED_MAX and more get a mapping of
 * their own, which free() unmaps, so that large blocks do not pile up.
 *
 * Not thread-safe. Part of the programs and not of a library, so that nothing else uses it. Tests
 * compile it under other names.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK      ((size_t)256 * 1024)
#define SHARED_MAX ((size_t)128 * 1024)
#define SPARE_MIN  ((size_t)8 * 1024)
#define ALIGNMENT  _Alignof(max_align_t)

/* Precedes each block. */
struct header {
	_Alignas(max_align_t) size_t size; /* of the block, a multiple of ALIGNMENT */
	size_t mapped;                     /* size of the block's own mapping, or 0 */
};

static char *chunk_next, *chunk_end;
static char *newest; /* the block that ends at chunk_next, or NULL */
/*
 * List of free blocks of SPARE_MIN and more; each contains the address of the next. They are blocks
 * of arenas, all of one size, and are reused for the next arena.
 */
static void *spare;

static struct header *header_of_block(void *block)
{
	return (struct header *)block - 1;
}

static size_t round_up_block(size_t size)
{
	return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void *own_mapping(size_t size)
{
	size_t total = size + sizeof(struct header);
	struct header *header = map(total);

	if (!header)
		return NULL;
	*header = (struct header){ size, total };
	return header + 1;
}

/* Takes a spare block of exactly this size, or returns NULL. */
static void *take_spare(size_t size)
{
	for (void **at = &spare; *at; at = *at) {
		void *block = *at;

		if (header_of_block(block)->size != size)
			continue;
		*at = *(void **)block;
		return block;
	}
	return NULL;
}

void *malloc(size_t size)
{
	struct header *header;
	size_t rounded;
	void *block;

	if (size > PTRDIFF_MAX - CHUNK) {
		errno = ENOMEM;
		return NULL;
	}
	rounded = round_up_block(size);
	if (rounded >= SHARED_MAX)
		return own_mapping(rounded);
	block = rounded >= SPARE_MIN ? take_spare(rounded) : NULL;
	if (block)
		return block;
	if ((size_t)(chunk_end - chunk_next) < rounded + sizeof(*header)) {
		char *chunk = map(CHUNK);

		if (!chunk)
			return NULL;
		chunk_next = chunk;
		chunk_end = chunk + CHUNK;
	}
	header = (struct header *)(void *)chunk_next;
	*header = (struct header){ rounded, 0 };
	newest = (char *)(header + 1);
	chunk_next = newest + rounded;
	return newest;
}

void free(void *block)
{
	int saved = errno;

	if (!block)
		return;
	if (header_of_block(block)->mapped > 0) {
		(void)munmap(header_of_block(block), header_of_block(block)->mapped);
		errno = saved;
	} else if (block == newest) {
		chunk_next = (char *)header_of_block(block);
		newest = NULL;
	} else if (header_of_block(block)->size >= SPARE_MIN) {
		*(void **)block = spare;
		spare = block;
	}
}

void *calloc(size_t n, size_t size)
{
	size_t total;
	void *block;

	if (__builtin_mul_overflow(n, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	block = malloc(total);
	/*
	 * Keeps the compiler from turning malloc and memset into a call of calloc, which would be
	 * this function.
	 */
	__asm__("" : "+r"(block));
	if (block)
		memset(block, 0, total);
	return block;
}

void *realloc(void *block, size_t size)
{
	struct header *header = block ? header_of_block(block) : NULL;
	void *larger;

	if (!block)
		return malloc(size);
	if (size <= header->size)
		return block;
	if (block == newest && size < SHARED_MAX && round_up_block(size) <= (size_t)(chunk_end - newest)) {
		header->size = round_up_block(size);
		chunk_next = newest + header->size;
		return block;
	}
	larger = malloc(size);
	if (!larger)
		return NULL;
	memcpy(larger, block, header->size);
	free(block);
	return larger;
}
