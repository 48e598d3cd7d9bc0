/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mux: several byte streams on one socket, as in NRI: frames with the number of their stream and
 * their length (SPEC installer-and-nri 12). Does no I/O, and does not know what the bytes mean.
 */
#ifndef GRAFT_RPC_MUX_H
#define GRAFT_RPC_MUX_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define GRAFT_MUX_HEADER 8
/*
 * The longest frame that is written. QUIRK: engines read a frame into 4096 bytes and close the
 * connection if it is longer; the container then starts without what a plugin wanted to add.
 */
#define GRAFT_MUX_FRAME_MAX 4096
/* The longest frame that is read: engines write a whole message of ttrpc, of at most 4 MiB. */
#define GRAFT_MUX_READ_MAX ((uint32_t)(4 << 20) + 4096)

/* What has been read of a frame. Starts zeroed. */
struct graft_mux_reader {
	uint8_t header[GRAFT_MUX_HEADER];
	size_t n_header;
	uint32_t left; /* bytes of the frame that are still to come */
};

/*
 * Takes the next n bytes of the socket, and calls `take` with each piece of a stream: a frame may
 * come in several pieces. `take` returns 0, or -1 with the error set, which ends the call. Returns
 * 0, or -1 with GRAFT_TOO_BIG for a frame above GRAFT_MUX_READ_MAX: nothing after that can be read.
 */
int graft_mux_read(struct graft_mux_reader *reader, const uint8_t *bytes, size_t n,
		   int (*take)(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err),
		   void *arg, struct graft_error *err);

/* Appends bytes of a stream, in frames of at most GRAFT_MUX_FRAME_MAX bytes with their header. */
void graft_mux_write(struct graft_buffer *out, uint32_t stream, const void *bytes, size_t n);

/*
 * Copies bytes to a header of `size` bytes that may come in pieces, *n_header of which are there.
 * Returns how many it takes.
 */
size_t graft_mux_fill(uint8_t *header, size_t size, size_t *n_header, const uint8_t *bytes, size_t n);

/* Big-endian numbers, as in frames, ttrpc and gRPC. */
static inline uint32_t graft_mux_number(const uint8_t bytes[4])
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}
static inline void graft_mux_put_number(uint8_t bytes[4], uint32_t number)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(number >> (24 - 8 * i));
}

#endif
