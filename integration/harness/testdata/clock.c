/* Moves the wall clock of the process that preloads it by the microseconds that stand in the file LOCKPROXY_TEST_CLOCK,
   whenever they change. The monotonic clock, and everybody else's, stay as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t none = 0, *step = &none;

__attribute__((constructor)) static void map_step(void) {
	const char *path = getenv("LOCKPROXY_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY) : -1;
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) step = page;
}

/* The system calls themselves: looking up the C library's functions would allocate, and the server's allocator asks
   for the time before it is ready. */
int clock_gettime(clockid_t id, struct timespec *ts) {
	int failed = syscall(SYS_clock_gettime, id, ts);
	if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t us = *step + ts->tv_sec * 1000000LL + ts->tv_nsec / 1000;
		ts->tv_nsec = us % 1000000 * 1000 + ts->tv_nsec % 1000;
		ts->tv_sec = us / 1000000;
	}
	return failed;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec ts;
	int failed = clock_gettime(CLOCK_REALTIME, &ts);
	(void)zone;
	if (tv) *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
	return failed;
}

time_t time(time_t *seconds) {
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (seconds) *seconds = ts.tv_sec;
	return ts.tv_sec;
}
