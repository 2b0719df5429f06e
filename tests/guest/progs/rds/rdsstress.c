// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rdsstress [-r ADDRESS] [-p PORT]: wait for the other side.
 * rdsstress -s ADDRESS [OPTIONS]: requests and ACKs over RDS, both ways.
 *
 * The options have the meanings of those of rds-stress(1):
 *   -s ADDRESS  connect to this address, and be the active side
 *   -r ADDRESS  the local address
 *   -p PORT     of the control connection (TCP); tasks have those behind (RDS)
 *   -t NR       tasks of each side, which send to all tasks of the other
 *   -d NR       requests that a task has under way to each of those
 *   -q BYTES    length of a request
 *   -a BYTES    length of an ACK
 *   -D BYTES    a request lends so much memory, and the ACK comes with an RDMA
 *               operation on it
 *   -M MODE     which: 0 READ and WRITE in turn, 1 READ, 2 WRITE
 *   -T SECONDS  how long, from the first ACK; 0 no limit
 *   -v          fill all with patterns, and verify them
 *   -z          no line for each second
 * BYTES may end in K or M.  Tasks are threads.
 *
 * The end is orderly: requests in flight are finished, and both sides compare
 * what they have sent with what the other has received.  Exit status 3: a
 * message was corrupted, duplicated, lost, or out of order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

#include "remote.h"
#include "stress.h"

#define VERSION		1
/* Seconds for the last requests, on a host that is busy. */
#define DRAIN		120

static struct task tasks[MAX_TASKS];
static struct options o = {
	.version = VERSION, .tasks = 1, .depth = 1, .request_bytes = 1024,
	.ack_bytes = sizeof(struct header),
};

/* ------------------------------------------------------------------ options */

static void usage(void)
{
	fputs("usage: rdsstress [-r ADDRESS] [-p PORT]\n"
	      "       rdsstress -s ADDRESS [-r ADDRESS] [-p PORT] [-t TASKS] [-d DEPTH]\n"
	      "                 [-q BYTES] [-a BYTES] [-D BYTES] [-M MODE] [-T SECONDS]\n"
	      "                 [-v] [-z]\n", stderr);
	exit(1);
}

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end == 'K' || *end == 'k')
		n <<= 10, end++;
	else if (*end == 'M' || *end == 'm')
		n <<= 20, end++;
	if (end == text || *end || n < least || n > most) {
		fprintf(stderr, "rdsstress: %s is not %u to %u\n", text, least,
			most);
		exit(1);
	}
	return n;
}

struct invocation {
	const char *send, *receive;
	in_port_t port;
	bool quiet;
};

static struct invocation parse(int argc, char **argv)
{
	struct invocation i = { .port = 4000 };
	int c;

	while ((c = getopt(argc, argv, "s:r:p:t:d:q:a:D:M:T:vz")) != -1) {
		switch (c) {
		case 's':
			i.send = optarg;
			break;
		case 'r':
			i.receive = optarg;
			break;
		case 'p':
			i.port = number(optarg, 1, 65000);
			break;
		case 't':
			o.tasks = number(optarg, 1, MAX_TASKS);
			break;
		case 'd':
			o.depth = number(optarg, 1, MAX_DEPTH);
			break;
		case 'q':
			o.request_bytes = number(optarg, sizeof(struct header),
						 1 << 20);
			break;
		case 'a':
			o.ack_bytes = number(optarg, sizeof(struct header),
					     1 << 20);
			break;
		case 'D':
			o.rdma_bytes = number(optarg, 0, 1 << 20);
			break;
		case 'M':
			o.mode = number(optarg, MODE_BOTH, MODE_WRITE);
			break;
		case 'T':
			o.seconds = number(optarg, 0, 1000000);
			break;
		case 'v':
			o.verify = 1;
			break;
		case 'z':
			i.quiet = true;
			break;
		default:
			usage();
		}
	}
	if (optind != argc)
		usage();
	return i;
}

/* --------------------------------------------------------- the other side */

static void must_get(int fd, void *data, size_t len)
{
	if (remote_get(fd, data, len))
		return;
	fputs("rdsstress: the other side has ended\n", stderr);
	exit(3);
}

/* A barrier of both sides. */
static void rendezvous(int fd)
{
	char c = 'r';

	remote_put(fd, &c, 1);
	must_get(fd, &c, 1);
}

/* Wait for the active side; a connection with its options in @o. */
static int passive(const struct invocation *i)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(i->port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, peer;

	if (i->receive && inet_pton(AF_INET, i->receive, &sa.sin_addr) != 1)
		usage();
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&sa, sizeof(sa)) || listen(fd, 1))
		die("listen");
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		die("accept");
	close(fd);
	must_get(peer, &o, sizeof(o));
	if (o.version != VERSION || !o.tasks || o.tasks > MAX_TASKS ||
	    !o.depth || o.depth > MAX_DEPTH) {
		fputs("rdsstress: the other side is another version\n", stderr);
		exit(1);
	}
	return peer;
}

/* --------------------------------------------------------------- statistics */

static struct counts total(void)
{
	struct counts sum = { 0 };
	uint32_t i;
	size_t k;

	for (i = 0; i < o.tasks; i++) {
		pthread_mutex_lock(&tasks[i].lock);
		for (k = 0; k < sizeof(sum) / sizeof(uint64_t); k++)
			((uint64_t *)&sum)[k] +=
				((uint64_t *)&tasks[i].counts)[k];
		pthread_mutex_unlock(&tasks[i].lock);
	}
	return sum;
}

static void print(const struct counts *now, const struct counts *before,
		  double seconds)
{
	uint64_t tx = now->requests_sent + now->acks_sent -
		      before->requests_sent - before->acks_sent;
	uint64_t acks = now->acks_received - before->acks_received;
	uint64_t rdma = now->read_bytes + now->written_bytes -
			before->read_bytes - before->written_bytes;

	printf("%4u %8.0f %10.0f %10.0f %8.0f %8.0f\n", o.tasks, tx / seconds,
	       (now->message_bytes - before->message_bytes) / 1024 / seconds,
	       rdma / 1024 / seconds,
	       tx ? (double)(now->send_us - before->send_us) / tx : 0,
	       acks ? (double)(now->rtt_us - before->rtt_us) / acks : 0);
	fflush(stdout);
}

/* --------------------------------------------------------------------- runs */

/* Wait for the first ACK: there is a connection, and time begins. */
static void connected(void)
{
	int64_t deadline = now_ms() + PATIENCE;

	while (!total().acks_received) {
		if (now_ms() > deadline) {
			fputs("rdsstress: no ACK comes\n", stderr);
			exit(3);
		}
		usleep(1000);
	}
}

/* Let the tasks work for the time given. */
static void work(bool quiet)
{
	struct counts first = total(), before = first, now;
	int64_t begin = now_us(), end = begin + o.seconds * 1000000LL;
	int64_t last = begin;

	puts("tsks     tx/s tx+rx K/s  rw+rr K/s  tx us/c   rtt us");
	while (!o.seconds || now_us() < end) {
		int64_t t;

		usleep(o.seconds && end - last < 1000000 ? end - last : 1000000);
		t = now_us();
		now = total();
		if (!quiet)
			print(&now, &before, (t - last) / 1e6);
		before = now;
		last = t;
	}
	now = total();
	print(&now, &first, (now_us() - begin) / 1e6);
}

/* No new requests; wait until nothing is in flight. */
static void drain(void)
{
	int64_t deadline = now_ms() + DRAIN * 1000;

	stress_drain = true;
	while (stress_idle != o.tasks) {
		if (now_ms() > deadline) {
			fprintf(stderr, "rdsstress: lost: %u of %u tasks wait\n",
				o.tasks - stress_idle, o.tasks);
			exit(3);
		}
		usleep(10000);
	}
}

/* Check that each side has received what the other has sent. */
static void compare(int fd)
{
	struct counts ours = total(), theirs;

	remote_put(fd, &ours, sizeof(ours));
	must_get(fd, &theirs, sizeof(theirs));
	printf("requests %llu out %llu in, ACKs %llu out %llu in, read %llu K, written %llu K\n",
	       (unsigned long long)ours.requests_sent,
	       (unsigned long long)ours.requests_received,
	       (unsigned long long)ours.acks_sent,
	       (unsigned long long)ours.acks_received,
	       (unsigned long long)ours.read_bytes >> 10,
	       (unsigned long long)ours.written_bytes >> 10);
	if (ours.requests_sent == theirs.requests_received &&
	    ours.requests_received == theirs.requests_sent &&
	    ours.acks_sent == theirs.acks_received &&
	    ours.acks_received == theirs.acks_sent &&
	    ours.requests_sent == ours.acks_received)
		return;
	fputs("rdsstress: lost: the other side counts otherwise\n", stderr);
	exit(3);
}

int main(int argc, char **argv)
{
	struct invocation i = parse(argc, argv);
	struct sockaddr_in self, there;
	socklen_t len = sizeof(self);
	uint32_t k;
	int fd;

	if (i.send) {
		fd = remote_connect(i.send, i.port);
		remote_put(fd, &o, sizeof(o));
	} else {
		fd = passive(&i);
	}
	if (getsockname(fd, (void *)&self, &len) ||
	    getpeername(fd, (void *)&there, &len))
		die("addresses");
	if (i.receive && inet_pton(AF_INET, i.receive, &self.sin_addr) != 1)
		usage();
	for (k = 0; k < o.tasks; k++)
		task_open(&tasks[k], &o, k, self.sin_addr, there.sin_addr,
			  i.port);
	rendezvous(fd);
	for (k = 0; k < o.tasks; k++)
		if (pthread_create(&tasks[k].thread, NULL, task_run, &tasks[k]))
			die("thread");
	connected();
	work(i.quiet);
	rendezvous(fd);
	drain();
	/*
	 * also on the other side: no more requests; wait for the last answers
	 */
	rendezvous(fd);
	drain();
	stress_stop = true;
	for (k = 0; k < o.tasks; k++)
		pthread_join(tasks[k].thread, NULL);
	compare(fd);
	return 0;
}
