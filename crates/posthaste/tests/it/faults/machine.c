/* A machine that can be told to misbehave: how long a sync takes, and how far its clock is off. Both are read from a file
   of two 64-bit numbers (milliseconds) that POSTHASTE_TEST_MACHINE names, at every call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static volatile const int64_t *told;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("POSTHASTE_TEST_MACHINE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) told = page;
}

static void hesitate(void) {
    int64_t delay = told ? told[0] : 0;
    struct timespec span = { delay / 1000, delay % 1000 * 1000000 };
    if (delay > 0) nanosleep(&span, NULL);
}

int fdatasync(int file) {
    hesitate();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}

int fsync(int file) {
    hesitate();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*ask)(clockid_t, struct timespec *);
    if (!ask) ask = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = ask(which, now);
    if (!failed && told && which == CLOCK_REALTIME) {
        int64_t off = told[1];
        now->tv_sec += off / 1000;
        now->tv_nsec += off % 1000 * 1000000;
        if (now->tv_nsec >= 1000000000) { now->tv_nsec -= 1000000000; now->tv_sec++; }
        if (now->tv_nsec < 0) { now->tv_nsec += 1000000000; now->tv_sec--; }
    }
    return failed;
}
