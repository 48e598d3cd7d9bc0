/* SPDX-License-Identifier: Apache-2.0 */
/* mux: headers and pieces. */
#include "rpc/mux.h"

#include <string.h>

size_t graft_mux_fill(uint8_t *header, size_t size, size_t *n_header, const uint8_t *bytes, size_t n)
{
	size_t wanted = size - *n_header;

	wanted = n < wanted ? n : wanted;
	memcpy(header + *n_header, bytes, wanted);
	*n_header += wanted;
	return wanted;
}

int graft_mux_read(struct graft_mux_reader *reader, const uint8_t *bytes, size_t n,
		   int (*take)(void *arg, uint32_t stream, const uint8_t *bytes, size_t n, struct graft_error *err),
		   void *arg, struct graft_error *err)
{
	while (n > 0) {
		size_t used;

		if (reader->n_header < GRAFT_MUX_HEADER) {
			used = graft_mux_fill(reader->header, GRAFT_MUX_HEADER, &reader->n_header, bytes, n);
			if (reader->n_header == GRAFT_MUX_HEADER) {
				reader->left = graft_mux_number(reader->header + 4);
				if (reader->left > GRAFT_MUX_READ_MAX)
					return graft_fail(err, GRAFT_TOO_BIG, 0, "a frame of %u bytes is too large",
							  reader->left);
			}
		} else {
			used = n < reader->left ? n : reader->left;
			if (take(arg, graft_mux_number(reader->header), bytes, used, err) < 0)
				return -1;
			reader->left -= (uint32_t)used;
		}
		if (reader->n_header == GRAFT_MUX_HEADER && reader->left == 0)
			reader->n_header = 0;
		bytes += used;
		n -= used;
	}
	return 0;
}

void graft_mux_write(struct graft_buffer *out, uint32_t stream, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		size_t length = n < GRAFT_MUX_FRAME_MAX ? n : GRAFT_MUX_FRAME_MAX;
		uint8_t header[GRAFT_MUX_HEADER];

		graft_mux_put_number(header, stream);
		graft_mux_put_number(header + 4, (uint32_t)length);
		graft_buffer_add(out, header, sizeof(header));
		graft_buffer_add(out, at, length);
		at += length;
		n -= length;
	}
}
