/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirements: evaluates a request's requirement expressions for the selected devices (SPEC
 * libnvidia-container 8).
 */
#include <string.h>

#include "base/cleanup.h"
#include "host/discover.h"
#include "plan/planner.h"
#include "request/requirement.h"

/*
 * What to ask NVML for if a fact is missing. The driver version is in procfs: without it there is
 * no driver.
 */
static const struct {
	enum graft_requirement_fact fact;
	enum graft_nvml_fact nvml;
} sources[] = {
	{ GRAFT_REQUIREMENT_CUDA, GRAFT_NVML_CUDA },
	{ GRAFT_REQUIREMENT_ARCH, GRAFT_NVML_ARCH },
	{ GRAFT_REQUIREMENT_BRAND, GRAFT_NVML_BRAND },
};

/*
 * The CUDA version. Every release of the driver is built with one CUDA version, which is the same
 * for all releases of a branch in the table of graft_cuda_version_bound(), so a bound from it
 * serves as both ends of the range. NVML would report another version only if it finds a libcuda
 * that is not the driver's own, and a container does not get that one. For a driver that the table
 * does not have (newer than this program) there is no value, and NVML is asked.
 */
static void set_cuda(const struct graft_fact *cuda, struct graft_requirement_facts *facts)
{
	if (cuda->value && cuda->source && strcmp(cuda->source, GRAFT_SOURCE_NVML) == 0) {
		facts->cuda = cuda->value;
	} else {
		facts->cuda_min = cuda->value;
		facts->cuda_max = cuda->value;
	}
}

static unsigned int to_nvml(unsigned int missing)
{
	unsigned int facts = 0;

	for (size_t i = 0; i < GRAFT_COUNT(sources); i++) {
		if ((missing & sources[i].fact) != 0)
			facts |= sources[i].nvml;
	}
	return facts;
}

/*
 * Evaluates all expressions for one GPU, or for none. Returns as graft_plan_check_requirements()
 * does.
 */
static int check_gpu_requirements(const struct graft_request *request, const struct graft_requirement_facts *facts,
				  unsigned int *ret_missing, struct graft_error *err)
{
	for (size_t i = 0; i < request->n_requirements; i++) {
		enum graft_requirement_result result;
		unsigned int missing;

		if (graft_requirement_evaluate(request->requirements[i], facts, &result, &missing, err) < 0)
			return graft_wrap(err, "'%s' cannot be evaluated", request->requirements[i]);
		if (result == GRAFT_REQUIREMENT_FALSE)
			return graft_requirement_fail(request->requirements[i], err);
		if (result == GRAFT_REQUIREMENT_UNKNOWN) {
			*ret_missing = to_nvml(missing);
			return 1;
		}
	}
	return 0;
}

int graft_plan_check_requirements(const struct graft_inventory *inventory, const struct graft_request *request,
				  const struct graft_selection *selection, unsigned int *ret_missing,
				  struct graft_error *err)
{
	struct graft_requirement_facts facts = { .driver = inventory->driver_version.value };
	int result = 0;

	*ret_missing = 0;
	if (!facts.driver)
		facts.absent |= GRAFT_REQUIREMENT_DRIVER;
	set_cuda(&inventory->cuda_version, &facts);
	if (selection->n_gpus == 0) {
		facts.absent |= GRAFT_REQUIREMENT_ARCH | GRAFT_REQUIREMENT_BRAND;
		return check_gpu_requirements(request, &facts, ret_missing, err);
	}
	/* MIG devices have the data of their GPU, which is always selected with them. */
	for (size_t i = 0; i < selection->n_gpus && result == 0; i++) {
		facts.arch = selection->gpus[i]->arch.value;
		facts.brand = selection->gpus[i]->brand.value;
		result = check_gpu_requirements(request, &facts, ret_missing, err);
	}
	return result;
}
