/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vulkan: the simulated libGLX_nvidia.so.0 as a Vulkan driver: a loader finds it through
 * nvidia_icd.json, lists the GPUs that the process can see and queries their properties. A device
 * can be created and asked for memory requirements of images, as vulkaninfo does; it draws nothing.
 * It implements version 5 of the Khronos loader's driver interface.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vk_icd.h>
#include <vulkan/vulkan.h>

#include "kernel_log.h"
#include "visible.h"

#define API __attribute__((visibility("default")))

/* Objects passed to the loader start with the loader's own data. */
struct gpu {
	VK_LOADER_DATA loader;
	uint32_t index;
};
struct instance {
	VK_LOADER_DATA loader;
	uint32_t n_gpus;
	struct gpu gpus[SIM_MAX_GPUS];
};
struct device {
	VK_LOADER_DATA loader;
	VK_LOADER_DATA queue;
};

/*
 * Sets *count to the number of elements that the caller gets. With `wants_elements`, *count is the
 * room that the caller has; if there are more elements, returns VK_INCOMPLETE.
 */
static VkResult give(uint32_t have, uint32_t *count, bool wants_elements)
{
	uint32_t room = *count;

	*count = wants_elements && room < have ? room : have;
	return wants_elements && room < have ? VK_INCOMPLETE : VK_SUCCESS;
}

static VkResult enumerate_instance_version(uint32_t *version)
{
	*version = VK_API_VERSION_1_3;
	return VK_SUCCESS;
}

/* One extension, which every loader requests, and no layers. */
static VkResult enumerate_instance_extensions(const char *layer, uint32_t *count, VkExtensionProperties *properties)
{
	VkResult result = give(1, count, properties != NULL);

	(void)layer;
	if (properties && *count > 0)
		properties[0] = (VkExtensionProperties){ VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME, 2 };
	return result;
}

static VkResult create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator,
				VkInstance *instance)
{
	struct instance *made = calloc(1, sizeof(*made));

	(void)info;
	(void)allocator;
	if (!made)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	if (sim_driver_access() != SIM_ACCESS_YES) {
		free(made);
		return VK_ERROR_INCOMPATIBLE_DRIVER;
	}
	set_loader_magic_value(made);
	for (uint32_t i = 0; i < sim_data.n_gpus; i++) {
		if (!sim_gpu_visible(i) || sim_gpu_lost(i))
			continue;
		made->gpus[made->n_gpus].index = i;
		set_loader_magic_value(&made->gpus[made->n_gpus++]);
	}
	*instance = (VkInstance)made;
	return VK_SUCCESS;
}

static void destroy_instance(VkInstance instance, const VkAllocationCallbacks *allocator)
{
	(void)allocator;
	free(instance);
}

static VkResult enumerate_gpus(VkInstance instance, uint32_t *count, VkPhysicalDevice *gpus)
{
	struct instance *self = (struct instance *)instance;
	VkResult result = give(self->n_gpus, count, gpus != NULL);

	for (uint32_t i = 0; gpus && i < *count; i++)
		gpus[i] = (VkPhysicalDevice)&self->gpus[i];
	return result;
}

static VkResult enumerate_groups(VkInstance instance, uint32_t *count, VkPhysicalDeviceGroupProperties *groups)
{
	struct instance *self = (struct instance *)instance;
	VkResult result = give(self->n_gpus, count, groups != NULL);

	for (uint32_t i = 0; groups && i < *count; i++) {
		groups[i].physicalDeviceCount = 1;
		groups[i].physicalDevices[0] = (VkPhysicalDevice)&self->gpus[i];
		groups[i].subsetAllocation = VK_FALSE;
	}
	return result;
}

static const volatile struct sim_data_gpu *facts(VkPhysicalDevice gpu)
{
	return &sim_data.gpus[((struct gpu *)gpu)->index];
}

/* Encodes an NVIDIA driver version for Vulkan: ten bits, eight, eight, six. */
static uint32_t driver_number(void)
{
	uint32_t parts[3] = { 0, 0, 0 };
	char text[32], *at = text;

	(void)sim_copy(text, sizeof(text), sim_data.driver_version);
	for (unsigned int i = 0; i < 3 && *at != '\0'; i++) {
		parts[i] = (uint32_t)strtoul(at, &at, 10);
		at += *at == '.';
	}
	return (parts[0] & 0x3ffu) << 22 | (parts[1] & 0xffu) << 14 | (parts[2] & 0xffu) << 6;
}

static void get_properties(VkPhysicalDevice gpu, VkPhysicalDeviceProperties *properties)
{
	const volatile struct sim_data_gpu *data = facts(gpu);

	memset(properties, 0, sizeof(*properties));
	properties->apiVersion = VK_API_VERSION_1_3;
	properties->driverVersion = driver_number();
	properties->vendorID = 0x10de;
	properties->deviceID = data->pci_id >> 16;
	properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
	(void)sim_copy(properties->deviceName, sizeof(properties->deviceName), data->name);
	properties->limits.maxImageDimension2D = 32768;
}

/* Converts "GPU-ac83bb1e-786d-..." to sixteen bytes. */
static void uuid_bytes(const volatile char *uuid, uint8_t bytes[VK_UUID_SIZE])
{
	unsigned int n = 0;
	char text[96];

	memset(bytes, 0, VK_UUID_SIZE);
	(void)sim_copy(text, sizeof(text), uuid);
	for (const char *c = text + (strncmp(text, "GPU-", 4) == 0 ? 4 : 0); *c && n < 2 * VK_UUID_SIZE; c++) {
		unsigned int digit = *c >= '0' && *c <= '9' ? (unsigned int)(*c - '0') : (unsigned int)(*c - 'a') + 10;

		if (*c != '-' && digit < 16)
			bytes[n / 2] |= (uint8_t)(n % 2 == 0 ? digit << 4 : digit);
		n += *c != '-';
	}
}

/*
 * Identifies the driver, either in a structure of its own or in members of the one for Vulkan 1.2.
 */
static void fill_driver(VkDriverId *id, char name[VK_MAX_DRIVER_NAME_SIZE], char info[VK_MAX_DRIVER_INFO_SIZE],
			VkConformanceVersion *conformance)
{
	char version[32];

	*id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
	(void)snprintf(name, VK_MAX_DRIVER_NAME_SIZE, "NVIDIA (simulated by Graft)");
	(void)sim_copy(version, sizeof(version), sim_data.driver_version);
	(void)snprintf(info, VK_MAX_DRIVER_INFO_SIZE, "%s", version);
	*conformance = (VkConformanceVersion){ 1, 3, 0, 0 };
}

/* Fills one of the structures that a caller has chained; unknown ones are left as they are. */
static void fill_more(VkPhysicalDevice gpu, VkBaseOutStructure *wanted)
{
	VkPhysicalDeviceDriverProperties *driver = (void *)wanted;
	VkPhysicalDeviceVulkan12Properties *all_12 = (void *)wanted;

	if (wanted->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)
		fill_driver(&driver->driverID, driver->driverName, driver->driverInfo, &driver->conformanceVersion);
	else if (wanted->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES)
		fill_driver(&all_12->driverID, all_12->driverName, all_12->driverInfo, &all_12->conformanceVersion);
	else if (wanted->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)
		uuid_bytes(facts(gpu)->uuid, ((VkPhysicalDeviceIDProperties *)wanted)->deviceUUID);
	else if (wanted->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES)
		uuid_bytes(facts(gpu)->uuid, ((VkPhysicalDeviceVulkan11Properties *)wanted)->deviceUUID);
}

static void get_properties2(VkPhysicalDevice gpu, VkPhysicalDeviceProperties2 *properties)
{
	get_properties(gpu, &properties->properties);
	for (VkBaseOutStructure *next = properties->pNext; next; next = next->pNext)
		fill_more(gpu, next);
}

static void get_features(VkPhysicalDevice gpu, VkPhysicalDeviceFeatures *features)
{
	(void)gpu;
	memset(features, 0, sizeof(*features));
}

static void get_features2(VkPhysicalDevice gpu, VkPhysicalDeviceFeatures2 *features)
{
	get_features(gpu, &features->features);
}

static void get_format(VkPhysicalDevice gpu, VkFormat format, VkFormatProperties *properties)
{
	(void)gpu;
	(void)format;
	memset(properties, 0, sizeof(*properties));
}

static void get_format2(VkPhysicalDevice gpu, VkFormat format, VkFormatProperties2 *properties)
{
	get_format(gpu, format, &properties->formatProperties);
}

static VkResult get_image_format(VkPhysicalDevice gpu, VkFormat format, VkImageType type, VkImageTiling tiling,
				 VkImageUsageFlags usage, VkImageCreateFlags flags, VkImageFormatProperties *properties)
{
	(void)gpu;
	(void)format;
	(void)type;
	(void)tiling;
	(void)usage;
	(void)flags;
	memset(properties, 0, sizeof(*properties));
	return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

static VkResult get_image_format2(VkPhysicalDevice gpu, const VkPhysicalDeviceImageFormatInfo2 *info,
				  VkImageFormatProperties2 *properties)
{
	return get_image_format(gpu, info->format, info->type, info->tiling, info->usage, info->flags,
				&properties->imageFormatProperties);
}

static void get_queues(VkPhysicalDevice gpu, uint32_t *count, VkQueueFamilyProperties *families)
{
	(void)gpu;
	(void)give(1, count, families != NULL);
	if (families && *count > 0)
		families[0] = (VkQueueFamilyProperties){
			VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1, 64, { 1, 1, 1 }
		};
}

static void get_queues2(VkPhysicalDevice gpu, uint32_t *count, VkQueueFamilyProperties2 *families)
{
	get_queues(gpu, count, families ? &families->queueFamilyProperties : NULL);
}

static void get_memory(VkPhysicalDevice gpu, VkPhysicalDeviceMemoryProperties *memory)
{
	memset(memory, 0, sizeof(*memory));
	memory->memoryTypeCount = 1;
	memory->memoryTypes[0] = (VkMemoryType){ VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0 };
	memory->memoryHeapCount = 1;
	memory->memoryHeaps[0] = (VkMemoryHeap){ facts(gpu)->memory, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT };
}

static void get_memory2(VkPhysicalDevice gpu, VkPhysicalDeviceMemoryProperties2 *memory)
{
	get_memory(gpu, &memory->memoryProperties);
}

static VkResult enumerate_device_extensions(VkPhysicalDevice gpu, const char *layer, uint32_t *count,
					    VkExtensionProperties *properties)
{
	(void)gpu;
	(void)layer;
	return give(0, count, properties != NULL);
}

static VkResult enumerate_device_layers(VkPhysicalDevice gpu, uint32_t *count, VkLayerProperties *properties)
{
	(void)gpu;
	return give(0, count, properties != NULL);
}

static void get_sparse(VkPhysicalDevice gpu, VkFormat format, VkImageType type, VkSampleCountFlagBits samples,
		       VkImageUsageFlags usage, VkImageTiling tiling, uint32_t *count,
		       VkSparseImageFormatProperties *properties)
{
	(void)gpu;
	(void)format;
	(void)type;
	(void)samples;
	(void)usage;
	(void)tiling;
	(void)give(0, count, properties != NULL);
}

/* --- a device: just enough for memory requirements of images --- */

static VkResult create_device(VkPhysicalDevice gpu, const VkDeviceCreateInfo *info,
			      const VkAllocationCallbacks *allocator, VkDevice *device)
{
	struct device *made = calloc(1, sizeof(*made));

	(void)gpu;
	(void)info;
	(void)allocator;
	if (!made)
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	set_loader_magic_value(made);
	set_loader_magic_value(&made->queue);
	*device = (VkDevice)made;
	return VK_SUCCESS;
}

static void destroy_device(VkDevice device, const VkAllocationCallbacks *allocator)
{
	(void)allocator;
	free(device);
}

static void get_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue *queue)
{
	(void)family;
	(void)index;
	*queue = (VkQueue) & ((struct device *)device)->queue;
}

static VkResult create_image(VkDevice device, const VkImageCreateInfo *info, const VkAllocationCallbacks *allocator,
			     VkImage *image)
{
	(void)device;
	(void)info;
	(void)allocator;
	static char image_of_all;

	*image = (VkImage)&image_of_all;
	return VK_SUCCESS;
}

static void destroy_image(VkDevice device, VkImage image, const VkAllocationCallbacks *allocator)
{
	(void)device;
	(void)image;
	(void)allocator;
}

static void get_image_memory(VkDevice device, VkImage image, VkMemoryRequirements *requirements)
{
	(void)device;
	(void)image;
	*requirements = (VkMemoryRequirements){ 65536, 65536, 1 };
}

/* --- entry points for the loader --- */

static PFN_vkVoidFunction get_instance_function(VkInstance instance, const char *name);
static PFN_vkVoidFunction get_device_function(VkDevice device, const char *name);

#define ROW(name, function)                               \
	{                                                 \
		"vk" name, (PFN_vkVoidFunction)(function) \
	}
/* clang-format off */
static const struct {
	const char *name;
	PFN_vkVoidFunction function;
} functions[] = {
	ROW("GetInstanceProcAddr", get_instance_function),
	ROW("GetDeviceProcAddr", get_device_function),
	ROW("EnumerateInstanceVersion", enumerate_instance_version),
	ROW("EnumerateInstanceExtensionProperties", enumerate_instance_extensions),
	ROW("CreateInstance", create_instance),
	ROW("DestroyInstance", destroy_instance),
	ROW("EnumeratePhysicalDevices", enumerate_gpus),
	ROW("EnumeratePhysicalDeviceGroups", enumerate_groups),
	ROW("GetPhysicalDeviceProperties", get_properties),
	ROW("GetPhysicalDeviceProperties2", get_properties2),
	ROW("GetPhysicalDeviceProperties2KHR", get_properties2),
	ROW("GetPhysicalDeviceFeatures", get_features),
	ROW("GetPhysicalDeviceFeatures2", get_features2),
	ROW("GetPhysicalDeviceFeatures2KHR", get_features2),
	ROW("GetPhysicalDeviceFormatProperties", get_format),
	ROW("GetPhysicalDeviceFormatProperties2", get_format2),
	ROW("GetPhysicalDeviceFormatProperties2KHR", get_format2),
	ROW("GetPhysicalDeviceImageFormatProperties", get_image_format),
	ROW("GetPhysicalDeviceImageFormatProperties2", get_image_format2),
	ROW("GetPhysicalDeviceImageFormatProperties2KHR", get_image_format2),
	ROW("GetPhysicalDeviceQueueFamilyProperties", get_queues),
	ROW("GetPhysicalDeviceQueueFamilyProperties2", get_queues2),
	ROW("GetPhysicalDeviceQueueFamilyProperties2KHR", get_queues2),
	ROW("GetPhysicalDeviceMemoryProperties", get_memory),
	ROW("GetPhysicalDeviceMemoryProperties2", get_memory2),
	ROW("GetPhysicalDeviceMemoryProperties2KHR", get_memory2),
	ROW("GetPhysicalDeviceSparseImageFormatProperties", get_sparse),
	ROW("EnumerateDeviceExtensionProperties", enumerate_device_extensions),
	ROW("EnumerateDeviceLayerProperties", enumerate_device_layers),
	ROW("CreateDevice", create_device),
	ROW("DestroyDevice", destroy_device),
	ROW("GetDeviceQueue", get_queue),
	ROW("CreateImage", create_image),
	ROW("DestroyImage", destroy_image),
	ROW("GetImageMemoryRequirements", get_image_memory),
};
/* clang-format on */

static PFN_vkVoidFunction get_instance_function(VkInstance instance, const char *name)
{
	(void)instance;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].function;
	}
	return NULL;
}

static PFN_vkVoidFunction get_device_function(VkDevice device, const char *name)
{
	(void)device;
	return get_instance_function(NULL, name);
}

API PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name);
API PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
	return get_instance_function(instance, name);
}

API VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
API VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	if (*version > 5)
		*version = 5;
	return VK_SUCCESS;
}
