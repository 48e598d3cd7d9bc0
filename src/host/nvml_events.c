/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml_events: the child that waits for NVML's events, after it has given up everything that the
 * driver's code could misuse (nvml_child.c). It writes lines:
 *
 *	xid 00000000:1b:00.0 79 [GI CI]
 *	lost 00000000:1b:00.0
 *	answers 00000000:1b:00.0
 *	failure TEXT
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/nvml_watch.h"

#define EVENT_XID         0x8ull
#define NO_INSTANCE       0xffffffffu
#define NVML_TIMEOUT      10
#define NVML_GPU_IS_LOST  15
#define NVML_RESET_NEEDED 16
#define NVML_SENSOR_GPU   0
#define WAIT_MS           5000u
#define LOST_PAUSE_S      1u

typedef void *nvml_device;

struct nvml_event {
	nvml_device device;
	unsigned long long type, data;
	unsigned int gi, ci;
};

struct events {
	const struct graft_nvml_question *question;
	int out_fd;
	void *set;
	nvml_device devices[GRAFT_NVML_GPUS_MAX]; /* from question->watched; NULL: does not answer */
	bool lost[GRAFT_NVML_GPUS_MAX];
	bool any_lost;
	int (*by_bus_id)(const char *bus_id, nvml_device *device);
	int (*temperature)(nvml_device device, int sensor, unsigned int *degrees);
	int (*create)(void **set);
	int (*register_events)(nvml_device device, unsigned long long types, void *set);
	int (*wait)(void *set, struct nvml_event *event, unsigned int timeout_ms);
};

/*
 * If the reader is gone, nothing is left to do. A line is shorter than PIPE_BUF and thus never cut.
 */
__attribute__((format(printf, 2, 3))) static void report_line(int fd, const char *format, ...)
{
	char line[GRAFT_NVML_TEXT_MAX + 64];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(line) - 1)
		_exit(2);
	line[n++] = '\n';
	if (write(fd, line, (size_t)n) != n)
		_exit(2);
}

_Noreturn void graft_nvml_events_fail(int out_fd, const char *why)
{
	report_line(out_fd, "failure %.200s", why ? why : "nvml error: unknown");
	_exit(1);
}

static void find_event_function(void *library, const char *name, const char *older, void *ret_function)
{
	void *symbol = dlsym(library, name);

	if (!symbol && older)
		symbol = dlsym(library, older);
	memcpy(ret_function, &symbol, sizeof(symbol));
}

static void find_event_functions(struct events *events, void *library)
{
	find_event_function(library, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId",
			    &events->by_bus_id);
	find_event_function(library, "nvmlDeviceGetTemperature", NULL, &events->temperature);
	find_event_function(library, "nvmlEventSetCreate", NULL, &events->create);
	find_event_function(library, "nvmlDeviceRegisterEvents", NULL, &events->register_events);
	find_event_function(library, "nvmlEventSetWait_v2", "nvmlEventSetWait", &events->wait);
	if (!events->by_bus_id || !events->create || !events->register_events || !events->wait)
		graft_nvml_events_fail(events->out_fd, "nvml error: function not found");
}

/* A missing sensor is not a fault. */
static bool is_lost(const struct events *events, size_t i)
{
	unsigned int degrees;
	int rc;

	if (!events->devices[i])
		return true;
	rc = events->temperature ? events->temperature(events->devices[i], NVML_SENSOR_GPU, &degrees) : 0;
	return rc == NVML_GPU_IS_LOST || rc == NVML_RESET_NEEDED;
}

static void look_at_watched(struct events *events, bool first)
{
	for (size_t i = 0; i < events->question->n_watched; i++) {
		bool lost = is_lost(events, i);

		if (first || lost != events->lost[i])
			report_line(events->out_fd, "%s %s", lost ? "lost" : "answers", events->question->watched[i]);
		events->lost[i] = lost;
		events->any_lost |= lost;
	}
}

/* A GPU without these events is only watched for whether it answers. */
static void open_watched(struct events *events)
{
	if (events->create(&events->set) != 0)
		graft_nvml_events_fail(events->out_fd, "nvml error: no set of events");
	for (size_t i = 0; i < events->question->n_watched; i++) {
		if (events->by_bus_id(events->question->watched[i], &events->devices[i]) != 0)
			events->devices[i] = NULL;
		else
			(void)events->register_events(events->devices[i], EVENT_XID, events->set);
	}
}

static void report_event(const struct events *events, const struct nvml_event *event)
{
	if ((event->type & EVENT_XID) == 0)
		return;
	for (size_t i = 0; i < events->question->n_watched; i++) {
		if (events->devices[i] != event->device)
			continue;
		if (event->gi == NO_INSTANCE || event->ci == NO_INSTANCE)
			report_line(events->out_fd, "xid %s %llu", events->question->watched[i], event->data);
		else
			report_line(events->out_fd, "xid %s %llu %u %u", events->question->watched[i], event->data,
				    event->gi, event->ci);
	}
}

_Noreturn void graft_nvml_events(const struct graft_nvml_question *question, void *library, int out_fd)
{
	struct events events = { .question = question, .out_fd = out_fd };
	int64_t lost_since = 0;

	find_event_functions(&events, library);
	open_watched(&events);
	look_at_watched(&events, true);
	for (;;) {
		struct nvml_event event = { .gi = NO_INSTANCE, .ci = NO_INSTANCE };
		int rc = events.wait(events.set, &event, WAIT_MS);

		if (rc == 0)
			report_event(&events, &event);
		else if (rc != NVML_TIMEOUT && rc != NVML_GPU_IS_LOST)
			graft_nvml_events_fail(out_fd, "nvml error: waiting for events failed");
		look_at_watched(&events, false);
		if (rc == NVML_GPU_IS_LOST)
			(void)sleep(LOST_PAUSE_S);
		/* A GPU that this process has lost may be there for the next one. */
		if (events.any_lost && lost_since == 0)
			lost_since = graft_clock_ms();
		if (events.any_lost && graft_clock_ms() - lost_since >= GRAFT_NVML_LOST_ANEW_MS)
			_exit(0);
	}
}
