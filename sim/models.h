/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models: facts about the GPUs that a topology may name: PCI ids, memory, compute capability, MIG
 * profiles.
 */
#ifndef GRAFT_SIM_MODELS_H
#define GRAFT_SIM_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_brand { SIM_BRAND_TESLA = 2, SIM_BRAND_GEFORCE = 5, SIM_BRAND_RTX = 13, SIM_BRAND_NVIDIA = 14 };
enum sim_arch {
	SIM_ARCH_PASCAL = 4,
	SIM_ARCH_VOLTA,
	SIM_ARCH_TURING,
	SIM_ARCH_AMPERE,
	SIM_ARCH_ADA,
	SIM_ARCH_HOPPER,
	SIM_ARCH_BLACKWELL
};

struct mig_size;

struct sim_model {
	const char *key;  /* the name in a topology */
	const char *name; /* the name that the driver reports */
	uint16_t pci_device, pci_subsystem;
	uint32_t cc_major, cc_minor;
	enum sim_arch arch;
	enum sim_brand brand;
	uint32_t memory_mib;
	uint32_t multiprocessors;
	uint32_t power_watts;
	const char *mig_profiles;         /* separated by blanks; "" if the model has no MIG */
	const struct mig_size *mig_sizes; /* for each of the profiles; NULL if the model has no MIG */
};

extern const struct sim_model sim_models[];
extern const size_t sim_n_models;

/* Returns the model of that key (ignoring case), or NULL. */
const struct sim_model *sim_model_find(const char *key);

/*
 * Name and brand as reported by a driver of that major version. 460 introduced "NVIDIA" as a brand
 * and as the start of names.
 */
const char *sim_model_name(const struct sim_model *model, unsigned int driver_major);
enum sim_brand sim_model_brand(const struct sim_model *model, unsigned int driver_major);

/* Returns whether the GPU's memory is coherent with the CPU's, as on Grace superchips. */
bool sim_model_is_coherent(const struct sim_model *model);

/*
 * The properties of a model's MIG profile, such as "3g.20gb". sim_mig_profile() returns false if
 * the model does not have that profile.
 */
struct sim_mig_profile {
	uint32_t slices;        /* compute slices of the GPU instance */
	uint32_t memory_slices; /* of 8 (of 4 on an A30) */
	uint32_t memory_mib;
	uint32_t multiprocessors;       /* of the GPU instance */
	uint32_t slice_multiprocessors; /* of a compute instance of one slice that does not fill its GPU instance */
	uint32_t first_id;              /* first GPU instance id that the driver assigns */
};
bool sim_mig_profile(const struct sim_model *model, const char *profile, struct sim_mig_profile *ret_profile);
/* Sets the compute and memory slices of the whole GPU; both are 0 for a model without MIG. */
void sim_mig_capacity(const struct sim_model *model, uint32_t *ret_slices, uint32_t *ret_memory_slices);

#endif
