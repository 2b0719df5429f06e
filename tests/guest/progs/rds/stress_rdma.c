// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA of rdsstress: a request lends a region, its ACK comes with an RDMA
 * operation on it.
 */
#include <string.h>

#include "stress.h"

/* One region in this many is taken back at once, by an invalidation. */
#define INVALIDATE_EVERY	16

void rdma_prepare(struct task *t, struct request *r, struct header *h)
{
	const struct options *o = t->o;

	r->rdma = RDMA_NONE;
	if (o->rdma_bytes) {
		if (o->mode == MODE_BOTH)
			r->rdma = h->seq & 1 ? RDMA_READ : RDMA_WRITE;
		else
			r->rdma = o->mode == MODE_READ ? RDMA_READ : RDMA_WRITE;
	}
	h->rdma = r->rdma;
	if (!o->verify)
		return;
	if (r->rdma == RDMA_READ)
		pattern_fill(r->region, o->rdma_bytes, 0,
			     stress_seed(h, true));
	else if (r->rdma == RDMA_WRITE)
		memset(r->region, UNTOUCHED, o->rdma_bytes);
}

void rdma_lend(const struct task *t, struct request *r, struct control *c)
{
	struct rds_get_mr_args args = {
		.vec = { .addr = (uintptr_t)r->region,
			 .bytes = t->o->rdma_bytes },
		.cookie_addr = (uintptr_t)&r->cookie,
		.flags = RDS_RDMA_READWRITE,
	};

	if (r->rdma == RDMA_NONE)
		return;
	/* both ways of release, in turn */
	r->once = r->seq & 2;
	if (r->once)
		args.flags |= RDS_RDMA_USE_ONCE;
	control_add(c, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
}

void rdma_return(struct task *t, struct request *r, const struct header *h)
{
	uint64_t flags = r->seq % INVALIDATE_EVERY ? 0 : RDS_RDMA_INVALIDATE;

	if (r->rdma == RDMA_NONE)
		return;
	if (t->o->verify &&
	    pattern_wrong(r->region, t->o->rdma_bytes, 0, stress_seed(h, true)))
		wrong(t, "a region", h);
	if (!r->once && endpoint_free_mr(&t->end, r->cookie, flags))
		wrong(t, "RDS_FREE_MR", h);
}

void rdma_serve(struct task *t, struct service *s, struct control *c)
{
	const struct header *h = &s->request;
	struct rds_rdma_args args = {
		.cookie = s->cookie,
		.remote_vec = { 0, t->o->rdma_bytes },
		.local_vec_addr = (uintptr_t)&s->iovec,
		.nr_local = 1,
		.flags = RDS_RDMA_NOTIFY_ME | RDS_RDMA_FENCE,
		.user_token = s - t->service,
	};

	s->iovec = (struct rds_iovec){ (uintptr_t)s->local, t->o->rdma_bytes };
	if (h->rdma == RDMA_WRITE) {
		args.flags |= RDS_RDMA_READWRITE;
		if (t->o->verify)
			pattern_fill(s->local, t->o->rdma_bytes, 0,
				     stress_seed(h, true));
	} else if (t->o->verify) {
		memset(s->local, UNTOUCHED, t->o->rdma_bytes);
	}
	control_add(c, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
}

void rdma_served(struct task *t, struct service *s, int status)
{
	const struct header *h = &s->done;

	if (status != RDS_RDMA_SUCCESS)
		wrong(t, "the status of an RDMA operation", h);
	if (h->rdma == RDMA_READ && t->o->verify &&
	    pattern_wrong(s->local, t->o->rdma_bytes, 0, stress_seed(h, true)))
		wrong(t, "what was read", h);
}
