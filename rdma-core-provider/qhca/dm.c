// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: the kernel provides whole pages of it, which are mapped here
 * and accessed by the CPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ccan/container_of.h>
#include <infiniband/cmd_ioctl.h>
#include <infiniband/driver.h>
#include <rdma/qhca-abi.h>
#include <util/udma_barrier.h>

#include "qhca-verbs.h"

struct qhca_dm {
	struct verbs_dm		vdm;
	char			*map;
	size_t			map_len;	/* whole pages */
	uint64_t		length;		/* requested length */
};

static struct qhca_dm *to_qdm(struct ibv_dm *dm)
{
	return container_of(dm, struct qhca_dm, vdm.dm);
}

/*
 * Offset and length are multiples of 4: device memory of other adapters
 * supports nothing smaller, so let programs notice here already.
 */
static int qhca_dm_check(struct qhca_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	if ((offset | length) & 3)
		return EINVAL;
	return 0;
}

static int qhca_memcpy_to_dm(struct ibv_dm *ibv_dm, uint64_t offset,
			     const void *from, size_t length)
{
	struct qhca_dm *dm = to_qdm(ibv_dm);
	int ret;

	ret = qhca_dm_check(dm, offset, length);
	if (ret)
		return ret;
	memcpy(dm->map + offset, from, length);
	/*
	 * The mapping is write-combining: a doorbell must not overtake the
	 * data.
	 */
	mmio_flush_writes();
	return 0;
}

static int qhca_memcpy_from_dm(void *to, struct ibv_dm *ibv_dm,
			       uint64_t offset, size_t length)
{
	struct qhca_dm *dm = to_qdm(ibv_dm);
	int ret;

	ret = qhca_dm_check(dm, offset, length);
	if (ret)
		return ret;
	memcpy(to, dm->map + offset, length);
	return 0;
}

static int qhca_dm_map(struct ibv_context *context, struct qhca_dm *dm,
		       uint64_t key, uint64_t size)
{
	if (size != (size_t)size || size < dm->length) {
		errno = EPROTO;
		return errno;
	}
	dm->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       context->cmd_fd, key);
	if (dm->map == MAP_FAILED)
		return errno;
	dm->map_len = size;
	dm->vdm.dm.context = context;
	dm->vdm.dm.memcpy_to_dm = qhca_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = qhca_memcpy_from_dm;
	return 0;
}

struct ibv_dm *qhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 2);
	uint64_t key, size;
	struct qhca_dm *dm;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->length = attr->length;
	fill_attr_out(cmd, QHCA_ATTR_ALLOC_DM_RESP_MMAP_KEY, &key, sizeof(key));
	fill_attr_out(cmd, QHCA_ATTR_ALLOC_DM_RESP_MMAP_SIZE, &size,
		      sizeof(size));
	if (ibv_cmd_alloc_dm(context, attr, &dm->vdm, cmd))
		goto err;
	if (!qhca_dm_map(context, dm, key, size))
		return &dm->vdm.dm;
	ibv_cmd_free_dm(&dm->vdm);
err:
	free(dm);
	return NULL;
}

int qhca_free_dm(struct ibv_dm *ibv_dm)
{
	struct qhca_dm *dm = to_qdm(ibv_dm);
	int ret;

	ret = ibv_cmd_free_dm(&dm->vdm);
	if (ret)
		return ret;
	qhca_unimport_dm(ibv_dm);
	return 0;
}

struct ibv_dm *qhca_import_dm(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, QHCA_METHOD_DM_QUERY, 4);
	uint64_t key, size;
	struct qhca_dm *dm;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_in_obj(cmd, QHCA_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out(cmd, QHCA_ATTR_DM_QUERY_RESP_MMAP_KEY, &key, sizeof(key));
	fill_attr_out(cmd, QHCA_ATTR_DM_QUERY_RESP_MMAP_SIZE, &size,
		      sizeof(size));
	fill_attr_out(cmd, QHCA_ATTR_DM_QUERY_RESP_LENGTH, &dm->length,
		      sizeof(dm->length));
	if (execute_ioctl(context, cmd) || qhca_dm_map(context, dm, key, size)) {
		free(dm);
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	return &dm->vdm.dm;
}

/* The memory itself stays: it belongs to the process that allocated it. */
void qhca_unimport_dm(struct ibv_dm *ibv_dm)
{
	struct qhca_dm *dm = to_qdm(ibv_dm);

	munmap(dm->map, dm->map_len);
	free(dm);
}

struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv_dm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct verbs_mr *vmr;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	if (ibv_cmd_reg_dm_mr(pd, &to_qdm(ibv_dm)->vdm, offset, length, access,
			      vmr, NULL)) {
		free(vmr);
		return NULL;
	}
	return &vmr->ibv_mr;
}
